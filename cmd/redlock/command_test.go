package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorumlock/redlock/internal/leash"
)

// TestMain makes of this binary all the programs that scripts run, by the name it is
// called by.
func TestMain(m *testing.M) { testscript.Main(leakFree{m}, programs) }

// programs has what scripts run, by name.
var programs = map[string]func(){"redlock": main}

// leakFree are tests that leave no goroutine behind.
type leakFree struct{ testscript.TestingM }

func (m leakFree) Run() int {
	// Under nohup(1) the programs would ignore SIGHUP as well.
	signal.Notify(make(chan os.Signal, 1), append(leash.Endings(), leash.Messages()...)...)
	code := m.TestingM.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return code
}

// nothingLeft waits until no goroutine is left but those to ignore. A process ends without
// waiting for a hung master; in a test, what waits for it ends by the client's timeouts.
func nothingLeft(t *testing.T, ignore ...goleak.Option) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); goleak.Find(ignore...) != nil && time.Now().Before(deadline); {
	}
	goleak.VerifyNone(t, ignore...)
}

// runArgs runs the command as a shell would, without a terminal.
func runArgs(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, newRoot(), args, &out, &errs)
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

func TestUsageErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // in the line
	}{
		"unknown command":       {[]string{"dmeo"}, "did you mean demo"},
		"URL for a command":     {[]string{"redis://:s3cret@h"}, "demo --nodes"},
		"unknown flag":          {[]string{"demo", "--nope"}, "--nope"},
		"flag without value":    {[]string{"demo", "--ttl"}, "--ttl"},
		"argument":              {[]string{"demo", "redis://:s3cret@h"}, "no arguments"},
		"version with argument": {[]string{"version", "x"}, "no arguments"},
		"ttl is no duration":    {[]string{"demo", "--ttl", "soon"}, "soon"},
		"ttl is a URL":          {[]string{"demo", "--ttl", "redis://u:s3cret@h"}, "invalid argument"},
		"ttl too short":         {[]string{"demo", "--ttl", "10ms"}, "below 1s"},
		"ttl negative":          {[]string{"demo", "--ttl=-1s"}, "below 1s"},
		"no URL":                {[]string{"demo", "--nodes", ""}, "URL 1"},
		"two commas":            {[]string{"demo", "--nodes", "redis://a,,redis://b"}, "URL 2 is empty"},
		"other scheme":          {[]string{"demo", "--nodes", "redis://a", "--nodes", "http://:s3cret@b"}, "URL 2"},
		"no scheme":             {[]string{"demo", "--nodes", "s3cret@b:6379"}, "URL 1"},
		"raw password":          {[]string{"demo", "--nodes", "redis://:s3cret%@b"}, "URL 1"},
		"quote in password":     {[]string{"demo", "--nodes", `redis://:s3cret"x@b:port`}, "URL 1"},
		"comma in password":     {[]string{"demo", "--nodes", "redis://:1,s3cret@b"}, "URL 2"},
		"bad option":            {[]string{"demo", "--nodes", "redis://:s3cret@b?nope=1"}, "URL 1"},
		"one master twice":      {[]string{"demo", "--nodes", "redis://:s3cret@b,redis://B:6379/1"}, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runArgs(t, t.Context(), tc.args...)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, stdout)
			assertOneLine(t, stderr)
			assert.Contains(t, stderr, tc.want)
			assert.NotContains(t, stderr, "s3cret")
		})
	}
}

func TestHelpSaysWhatItDoes(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"demo", "--help"}, {"help", "demo"}} {
		code, stdout, stderr := runArgs(t, t.Context(), args...)
		assert.Equal(t, exitOK, code)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "Examples:\n  redlock demo", "redlock %v", args)
		assertFits(t, stdout)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := runArgs(t, t.Context(), "version")
	assert.Equal(t, exitOK, code)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "github.com/quorumlock/redlock")
	assert.Contains(t, stdout, "go1.")
}

// What is released is stamped, wherever it was built.
func TestVersionIsStamped(t *testing.T) {
	defer func(before string) { release = before }(release)
	release = "v1.2.3"
	_, stdout, _ := runArgs(t, t.Context(), "--version")
	assert.Equal(t, "redlock version v1.2.3\n", stdout)
	_, stdout, _ = runArgs(t, t.Context(), "version")
	assert.Regexp(t, `\Aredlock +v1\.2\.3\n`, stdout)
}

func TestVersionShowsWhatTheBuildKnows(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printVersion(&out, "redlock", "", &debug.BuildInfo{
		GoVersion: "go1.26.0",
		Main:      debug.Module{Path: "example.com/m", Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "GOOS", Value: "plan9"}, {Key: "GOARCH", Value: "arm"},
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		},
	}))
	assert.Equal(t, "redlock    v1.2.3\nmodule     example.com/m\ngo         go1.26.0 plan9/arm\n"+
		"revision   abc\nmodified   yes: built from a changed checkout\n", out.String())
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"demo"}, {"demo", "--json"}, {"version"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), newRoot(), args, fullDisk{}, &stderr)
		goleak.VerifyNone(t)
		assert.Equal(t, exitFailed, code, "redlock %v", args)
		assertOneLine(t, stderr.String())
		assert.Contains(t, stderr.String(), "no space left")
	}
}
