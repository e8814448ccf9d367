//go:build unix

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorumlock/redlock/internal/testenv/session"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"redlock-lab": main}) }

// TestSessions runs the scripts in testdata/script: sessions at a shell.
func TestSessions(t *testing.T) {
	session.Run(t, "testdata/script", session.Begin, session.Shell)
}
