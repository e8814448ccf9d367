package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	atMasters = []string{"run", "status", "release", "nodes"}
	painted   = []string{"demo", "status", "release", "nodes"}
)

var environment = []entry{
	{nodesVariable, "The masters, if there is neither --nodes nor --nodes-file: URLs, separated by commas.", atMasters},
	{nodesFileVariable, "The path of a file with the masters, if " + nodesVariable + " has none.", atMasters},
	{"XDG_CONFIG_HOME", "The folder of redlock/nodes in place of ~/.config, except on macOS.", atMasters},
	{"NO_COLOR", "If it is set and not empty, nothing is coloured.", painted},
	{"TERM", "If it is dumb, nothing is coloured.", painted},
	{keyVariable, "Set for the command: the KEY of the lock.", []string{"run"}},
	{untilVariable, "Set for the command: the end of the lock if it were never renewed.", []string{"run"}},
	{tokenVariable, "Set for the command with --fencing: the fencing token of the lock.", []string{"run"}},
}

var files = []entry{
	{"~/.config/redlock/nodes", "The masters, if neither the command line nor the environment says which: a URL in each line. It holds passwords, so its mode should be 600.", atMasters},
	{"~/Library/Application Support/redlock/nodes", "The same on macOS.", atMasters},
	{systemNodes, "The masters of all users of the host, if there is none of these.", atMasters},
}

// Each variable that the command knows is in its manual, as is each file.
func TestManualTellsOfTheEnvironment(t *testing.T) {
	page, err := manual.ReadFile("man/redlock-run.1")
	require.NoError(t, err)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	variable := regexp.MustCompile(`= +"(REDLOCK_[A-Z_]+)"`)
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
			assert.True(t, strings.Contains(string(page), ".TP\n\\fB"+m[1]+"\\fP\n"), "%s of %s is not in the manual", m[1], file)
		}
	}
	for _, section := range []string{"EXIT STATUS", "ENVIRONMENT", "FILES"} {
		assert.True(t, strings.Contains(string(page), "\n.SH "+section+"\n"), "no section %s", section)
	}
	assert.Regexp(t, `(?m)^ *76 the lock was lost`, string(page))
}
