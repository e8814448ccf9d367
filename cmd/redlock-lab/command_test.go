package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/demo"
	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/sim"
	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/site"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

func TestUsageErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // in the line
	}{
		"unknown command":       {[]string{"dmeo"}, "did you mean demo"},
		"URL for a command":     {[]string{"redis://:s3cret@h"}, "masters are given with --nodes"},
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
		"port is too high":      {[]string{"serve", "--port", "65536"}, "want 0 to 65535"},
		"port is a URL":         {[]string{"serve", "--port", "redis://:s3cret@h"}, "invalid argument"},
		"no folder":             {[]string{"export"}, "want one DIR"},
		"two folders":           {[]string{"export", "a", "redis://:s3cret@h"}, "want one DIR"},
		"one master twice":      {[]string{"demo", "--nodes", "redis://:s3cret@b,redis://B:6379/1"}, "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), tc.args...)
			clitest.AssertUsage(t, tc.want, code, stdout, stderr)
		})
	}
}

func TestHelpSaysWhatItDoes(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"help"}, {"demo", "--help"}, {"help", "demo"}} {
		code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), args...)
		assert.Equal(t, cli.ExitOK, code)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "Examples:\n  redlock-lab demo", "redlock-lab %v", args)
		clitest.AssertFits(t, stdout)
	}
	clitest.AssertHelpFits(t, newRoot())
}

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"demo"}, {"demo", "--json"}, {"version"}} {
		clitest.AssertFailsOnAFullDisk(t, newRoot(), args...)
	}
}

func TestVersion(t *testing.T) {
	_, stdout, _ := clitest.Run(t, t.Context(), newRoot(), "version")
	assert.Regexp(t, `\Aredlock-lab \S+\nmodule      github.com/quorumlock/redlock\n`, stdout)
}

// The manual pages are those of the current commands.
func TestManualPagesAreOfThisVersion(t *testing.T) {
	painted := []string{"demo"}
	clitest.ManualIsOf(t, newRoot(), manual, []clitest.Entry{
		{Term: "NO_COLOR", Text: "If it is set and not empty, nothing is coloured.", Commands: painted},
		{Term: "TERM", Text: "If it is dumb, nothing is coloured.", Commands: painted},
	}, nil)
}

// docs/lab.md has a section for each command, which names each of its flags.
func TestLabPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/lab.md")
	require.NoError(t, err)
	for _, c := range []*cobra.Command{demo.Command(), sim.Command(), site.Serve(), site.Export()} {
		_, section, found := strings.Cut(string(page), "\n## redlock-lab "+c.Name()+"\n")
		require.True(t, found, c.Name())
		section, _, _ = strings.Cut(section, "\n## ")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			assert.Regexp(t, "(?m)^\\| .*`--"+f.Name+"\\b", section)
		})
	}
}
