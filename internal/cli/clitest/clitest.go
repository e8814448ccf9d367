// Package clitest helps to test commands of package cli. It runs command lines in the process of a
// test, and checks what every command promises.
package clitest

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/terminal"
)

// NothingLeft waits until no goroutine is left but the ignored ones. A process ends without waiting
// for a hung master. In a test, goroutines that wait for it end by the client's timeouts.
func NothingLeft(t *testing.T, ignore ...goleak.Option) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); goleak.Find(ignore...) != nil && time.Now().Before(deadline); {
	}
	goleak.VerifyNone(t, ignore...)
}

// Run runs a command line as a shell would, without a terminal.
func Run(t *testing.T, ctx context.Context, root *cobra.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(ctx, root, args, &out, &errs)
	NothingLeft(t)
	return code, out.String(), errs.String()
}

// AssertOneLine checks that a failed command has written one line to stderr.
func AssertOneLine(t *testing.T, stderr string) {
	t.Helper()
	assert.Equal(t, 1, strings.Count(stderr, "\n"), "want one line, got %q", stderr)
	assert.True(t, strings.HasSuffix(stderr, "\n"))
	assert.Regexp(t, `^redlock(-lab)?: `, stderr)
	assert.NotContains(t, stderr, "Usage:")
}

// AssertUsage checks the result of a mistaken command line: stdout is empty, and one line on stderr
// contains want and no password.
func AssertUsage(t *testing.T, want string, code int, stdout, stderr string) {
	t.Helper()
	assert.Equal(t, cli.ExitUsage, code)
	assert.Empty(t, stdout)
	AssertOneLine(t, stderr)
	assert.Contains(t, stderr, want)
	assert.NotContains(t, stderr, "s3cret")
}

// Program returns redlock with these subcommands.
func Program(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: "redlock"}
	root.AddCommand(commands...)
	return cli.Program(root, "", fstest.MapFS{})
}

// AssertFits checks that no line is wider than the narrowest terminal.
func AssertFits(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		assert.LessOrEqual(t, terminal.Width(line), terminal.Columns, "too wide: %q", line)
	}
}

// AssertHelpFits checks the same of the help of all commands but completion, which cobra writes.
func AssertHelpFits(t *testing.T, root *cobra.Command) {
	t.Helper()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			_, stdout, _ := Run(t, t.Context(), root, "help", cmd.Name())
			AssertFits(t, stdout)
		}
	}
}

// Escapes matches the codes that colour text.
var Escapes = regexp.MustCompile("\x1b\\[[0-9]+m")

// FullDisk is a writer that always fails.
type FullDisk struct{}

func (FullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// AssertFailsOnAFullDisk checks that a command line fails if its output cannot be written.
func AssertFailsOnAFullDisk(t *testing.T, root *cobra.Command, args ...string) {
	t.Helper()
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), root, args, FullDisk{}, &stderr)
	NothingLeft(t)
	assert.Equal(t, cli.ExitFailed, code, "%v", args)
	AssertOneLine(t, stderr.String())
	assert.Contains(t, stderr.String(), "no space left")
}
