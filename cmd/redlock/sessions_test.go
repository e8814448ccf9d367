//go:build unix

package main

import (
	"cmp"
	"os"
	"testing"
)

// TestSessions runs the scripts in testdata/script: sessions at a shell, with real masters.
// SYSTEM_FILE stands for /etc/redlock/nodes there.
func TestSessions(t *testing.T) { runScripts(t, "testdata/script", beginSession, sessionWords) }

func init() { systemFile = cmp.Or(os.Getenv("SYSTEM_FILE"), "/nonexistent/redlock/nodes") }
