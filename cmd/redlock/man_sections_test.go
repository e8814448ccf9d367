package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// entry is one of a list in a manual page.
type entry struct {
	term, text string
	commands   []string // whose pages have it
}

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

var (
	statusTable     = regexp.MustCompile(`(?s)\n\nExit status:\n+(.*)\z`)
	statusParagraph = regexp.MustCompile(`(?s)\n\n(The exit status is .*?)(\n\n|\z)`)
)

// manualSections takes the exit status out of a command's description, and returns the rest of
// that and the sections EXIT STATUS, ENVIRONMENT and FILES.
func manualSections(cmd *cobra.Command) (description, sections string) {
	description = cmd.Long
	if description == "" {
		description = cmd.Short
	}
	status := "0 if all went well, 64 if the command line is wrong, and 1 after any other error.\n"
	switch table, paragraph := statusTable.FindStringSubmatch(description), statusParagraph.FindStringSubmatch(description); {
	case !cmd.HasParent():
		status = "That of the command: its page lists them.\n"
	case table != nil:
		description = strings.TrimSuffix(description, table[0])
		status = ".EX\n" + roff(strings.TrimRight(table[1], "\n")) + "\n.EE\n"
	case paragraph != nil:
		description = strings.Replace(description, paragraph[0], paragraph[2], 1)
		status = roff(paragraph[1]) + "\n"
	}
	return description, ".SH EXIT STATUS\n" + status + "\n" + list("ENVIRONMENT", environment, cmd) + list("FILES", files, cmd)
}

func list(title string, entries []entry, cmd *cobra.Command) string {
	var s strings.Builder
	for _, e := range entries {
		if slices.Contains(e.commands, cmd.Name()) {
			fmt.Fprintf(&s, ".TP\n\\fB%s\\fP\n%s\n", roff(e.term), roff(e.text))
		}
	}
	if s.Len() == 0 {
		return ""
	}
	return ".SH " + title + "\n" + s.String() + "\n"
}

func roff(s string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s) }

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
