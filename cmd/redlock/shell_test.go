package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// shell is where a test types commands: masters are in its environment.
type shell struct {
	*testing.T
	command func() *cobra.Command // the subcommand that is typed
	masters *redlocktest.Masters
	said    func(text string) // is called with what a command writes to stderr; nil: nobody is
}

// saying is a writer that tells what was written.
type saying struct {
	io.Writer
	said func(string)
}

func (s saying) Write(p []byte) (int, error) {
	if s.said != nil {
		s.said(string(p))
	}
	return s.Writer.Write(p)
}

func newShell(t *testing.T, command func() *cobra.Command, masters int) *shell {
	s := &shell{T: t, command: command, masters: redlocktest.Start(t, masters)}
	t.Setenv(nodesVariable, strings.Join(s.masters.URLs(), ","))
	return s
}

// types runs a command. Nothing that it started still runs.
func (s *shell) types(args ...string) (code int, stdout, stderr string) {
	s.Helper()
	var out, errs bytes.Buffer
	ignore := goleak.IgnoreCurrent()
	code = run(s.Context(), testProgram(s.command()), args, &out, saying{&errs, s.said})
	nothingLeft(s.T, ignore)
	if !slices.Contains(args, "--json") && !slices.Contains(args, "--show-value") {
		assertFits(s.T, out.String())
	}
	return code, out.String(), errs.String()
}

// lays puts values under a key: a letter is one, - none, T a list.
func (s *shell) lays(key, values string) {
	s.Helper()
	for i, v := range values {
		m := s.masters.Master(i).Miniredis()
		switch v {
		case '-':
			m.Del(key)
		case 'T':
			_, err := m.Push(key, "x")
			require.NoError(s, err)
		default:
			require.NoError(s, m.Set(key, value(string(v))))
			m.SetTTL(key, time.Hour)
		}
	}
}

// value is a lock's that a test finds again.
func value(letter string) string { return letter + "5ec4e70-0000-4000-8000-000000000000" }

func named(letter string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(value(letter))))[:8] }

func (s *shell) has(key string) (which []int) {
	for i, m := range s.masters.All() {
		if m.Miniredis().Exists(key) {
			which = append(which, i)
		}
	}
	return which
}
