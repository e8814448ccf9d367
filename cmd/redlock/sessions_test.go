//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/testenv/session"
)

// TestSessions runs the scripts in testdata/script: sessions at a shell, with real masters.
// SYSTEM_FILE stands for /etc/redlock/nodes there. They also have these words:
//
//	objects FILE  each line of the file is a JSON object, and there is one at least
//	logged FILE   each line is a record of --log-format json, as docs/command.md describes it
func TestSessions(t *testing.T) {
	session.Run(t, "testdata/script", session.Begin, session.Shell, session.Words{"objects": objects, "logged": logged})
}

func init() { masterlist.SystemFile = cmp.Or(os.Getenv("SYSTEM_FILE"), "/nonexistent/redlock/nodes") }

func objects(s *session.Session, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: objects FILE")
	}
	_, err := objectsIn(s.ReadFile(args[0]))
	return err
}

// objectsIn returns the objects of a text that has one in each line.
func objectsIn(text string) (all []map[string]any, err error) {
	for line := range strings.Lines(text) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		all = append(all, object)
	}
	if len(all) == 0 {
		return nil, errors.New("no object")
	}
	return all, nil
}
