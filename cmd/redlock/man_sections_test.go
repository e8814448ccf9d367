package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/cmd/redlock/internal/run"
	"github.com/quorumlock/redlock/internal/cli/clitest"
	"github.com/quorumlock/redlock/internal/masterlist"
)

var (
	atMasters = []string{"run", "elect", "acquire", "extend", "release", "status", "nodes"}
	underLock = []string{"run", "elect"}
	painted   = []string{"status", "release", "nodes"}
)

var environment = []clitest.Entry{
	{Term: masterlist.NodesVariable, Text: "The masters, if there is neither --nodes nor --nodes-file: URLs, separated by commas.", Commands: atMasters},
	{Term: masterlist.NodesFileVariable, Text: "The path of a file with the masters, if " + masterlist.NodesVariable + " has none.", Commands: atMasters},
	{Term: "XDG_CONFIG_HOME", Text: "The folder of redlock/nodes in place of ~/.config, except on macOS.", Commands: atMasters},
	{Term: "NO_COLOR", Text: "If it is set and not empty, nothing is coloured.", Commands: painted},
	{Term: "TERM", Text: "If it is dumb, nothing is coloured.", Commands: painted},
	{Term: run.KeyVariable, Text: "Set for the command: the KEY of the lock.", Commands: underLock},
	{Term: run.UntilVariable, Text: "Set for the command: the end of the lock if it were never renewed.", Commands: underLock},
	{Term: run.TokenVariable, Text: "Set for the command with --fencing: the fencing token of the lock.", Commands: underLock},
}

var files = []clitest.Entry{
	{Term: "~/.config/redlock/nodes", Text: "The masters, if neither the command line nor the environment says which: a URL in each line. It holds passwords, so its mode should be 600.", Commands: atMasters},
	{Term: "~/Library/Application Support/redlock/nodes", Text: "The same on macOS.", Commands: atMasters},
	{Term: masterlist.SystemNodes, Text: "The masters of all users of the host, if there is none of these.", Commands: atMasters},
}

// The manual describes each environment variable and each file of the command.
func TestManualTellsOfTheEnvironment(t *testing.T) {
	page, err := manual.ReadFile("man/redlock-run.1")
	require.NoError(t, err)
	var sources []string
	for _, pattern := range []string{"internal/*/*.go", "../../internal/masterlist/*.go"} {
		some, err := filepath.Glob(pattern)
		require.NoError(t, err)
		sources = append(sources, some...)
	}
	known := 0
	variable := regexp.MustCompile(`= +"(REDLOCK_[A-Z_]+)"`)
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
			known++
			assert.True(t, strings.Contains(string(page), ".TP\n\\fB"+m[1]+"\\fP\n"), "%s of %s is not in the manual", m[1], file)
		}
	}
	assert.Equal(t, 5, known)
	for _, section := range []string{"EXIT STATUS", "ENVIRONMENT", "FILES"} {
		assert.True(t, strings.Contains(string(page), "\n.SH "+section+"\n"), "no section %s", section)
	}
	assert.Regexp(t, `(?m)^ *76 the lock was lost`, string(page))
}
