package clitest

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

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Shell is where a test types commands. Its environment lists the masters.
type Shell struct {
	*testing.T
	command func() *cobra.Command // the subcommand that is typed
	Masters *redlocktest.Masters
	Said    func(text string) // called with everything that a command writes to stderr; may be nil
}

// Saying is a writer that also passes to Said what is written.
type Saying struct {
	io.Writer
	Said func(string) // may be nil
}

func (s Saying) Write(p []byte) (int, error) {
	if s.Said != nil {
		s.Said(string(p))
	}
	return s.Writer.Write(p)
}

// NewShell starts masters in memory, and lists them in the environment.
func NewShell(t *testing.T, command func() *cobra.Command, masters int) *Shell {
	s := &Shell{T: t, command: command, Masters: redlocktest.Start(t, masters)}
	t.Setenv(masterlist.NodesVariable, strings.Join(s.Masters.URLs(), ","))
	return s
}

// Types runs a command. When it returns, nothing that the command started still runs.
func (s *Shell) Types(args ...string) (code int, stdout, stderr string) {
	s.Helper()
	var out, errs bytes.Buffer
	ignore := goleak.IgnoreCurrent()
	code = cli.Run(s.Context(), Program(s.command()), args, &out, Saying{&errs, s.Said})
	NothingLeft(s.T, ignore)
	if !slices.Contains(args, "--json") && !slices.Contains(args, "--show-value") {
		AssertFits(s.T, out.String())
	}
	return code, out.String(), errs.String()
}

// Lays stores values under a key, one on each master: a letter stores its Value, - nothing, T a
// list.
func (s *Shell) Lays(key, values string) {
	s.Helper()
	for i, v := range values {
		m := s.Masters.Master(i).Miniredis()
		switch v {
		case '-':
			m.Del(key)
		case 'T':
			_, err := m.Push(key, "x")
			require.NoError(s, err)
		default:
			require.NoError(s, m.Set(key, Value(string(v))))
			m.SetTTL(key, time.Hour)
		}
	}
}

// Value returns a lock's value that a test can recognize.
func Value(letter string) string { return letter + "5ec4e70-0000-4000-8000-000000000000" }

// Named returns the name under which Value is shown.
func Named(letter string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(Value(letter))))[:8] }

// Has returns the masters that have the key.
func (s *Shell) Has(key string) (which []int) {
	for i, m := range s.Masters.All() {
		if m.Miniredis().Exists(key) {
			which = append(which, i)
		}
	}
	return which
}
