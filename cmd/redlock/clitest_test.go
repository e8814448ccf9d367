package main

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
)

// nothingLeft waits until no goroutine is left but those to ignore. A process ends without
// waiting for a hung master; in a test, what waits for it ends by the client's timeouts.
func nothingLeft(t *testing.T, ignore ...goleak.Option) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); goleak.Find(ignore...) != nil && time.Now().Before(deadline); {
	}
	goleak.VerifyNone(t, ignore...)
}

// runArgs runs a command line as a shell would, without a terminal.
func runArgs(t *testing.T, ctx context.Context, root *cobra.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, root, args, &out, &errs)
	nothingLeft(t)
	return code, out.String(), errs.String()
}

func assertOneLine(t *testing.T, stderr string) {
	t.Helper()
	assert.Equal(t, 1, strings.Count(stderr, "\n"), "want one line, got %q", stderr)
	assert.True(t, strings.HasSuffix(stderr, "\n"))
	assert.True(t, strings.HasPrefix(stderr, "redlock: "), stderr)
	assert.NotContains(t, stderr, "Usage:")
}

// testProgram is redlock with these subcommands.
func testProgram(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: "redlock"}
	root.AddCommand(commands...)
	return newProgram(root, "", fstest.MapFS{})
}

func assertFits(t *testing.T, out string) {
	t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		assert.LessOrEqual(t, width(line), columns, "too wide: %q", line)
	}
}

var escapes = regexp.MustCompile("\x1b\\[[0-9]+m")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
