//go:build unix

package main

import (
	"cmp"
	"os"
	"testing"

	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/testenv/session"
)

// TestSessions runs the scripts in testdata/script: sessions at a shell, with real masters.
// SYSTEM_FILE stands for /etc/redlock/nodes there.
func TestSessions(t *testing.T) { session.Run(t, "testdata/script", session.Begin, session.Shell) }

func init() { masterlist.SystemFile = cmp.Or(os.Getenv("SYSTEM_FILE"), "/nonexistent/redlock/nodes") }
