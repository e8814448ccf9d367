package clitest

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the manual pages")

// Entry is an entry of a list in a manual page.
type Entry struct {
	Term, Text string
	Commands   []string // those whose pages have it
}

// ManualIsOf checks that the folder man has the current pages of a program's commands. With -update
// it writes them.
func ManualIsOf(t *testing.T, root *cobra.Command, manual fs.FS, environment, files []Entry) {
	t.Helper()
	root.DisableAutoGenTag = true
	root.InitDefaultVersionFlag()
	pages := map[string][]byte{}
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if cmd.Name() == "help" {
			continue
		}
		when := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		header := &doc.GenManHeader{Section: "1", Source: root.Name(), Manual: "User Commands", Date: &when}
		sections := ""
		cmd.Long, sections = manualSections(cmd, environment, files)
		var page bytes.Buffer
		cmd.DisableAutoGenTag = true
		require.NoError(t, doc.GenMan(cmd, header, &page))
		name := root.Name() + ".1"
		if cmd != root {
			name = root.Name() + "-" + cmd.Name() + ".1"
		}
		before, after, found := strings.Cut(page.String(), ".SH EXAMPLE\n")
		title := ".SH EXAMPLE\n"
		if !found {
			before, after, found = strings.Cut(page.String(), ".SH SEE ALSO\n")
			title = ".SH SEE ALSO\n"
		}
		require.True(t, found, name)
		pages[name] = []byte(before + sections + title + after)
	}
	if *update {
		for name, page := range pages {
			require.NoError(t, os.WriteFile(filepath.Join("man", name), page, 0o644))
		}
		return
	}
	entries, err := fs.ReadDir(manual, "man")
	require.NoError(t, err)
	assert.Len(t, entries, len(pages))
	for name, want := range pages {
		page, err := fs.ReadFile(manual, "man/"+name)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(page), "go test ./cmd/%s -run Manual -update", root.Name())
	}
}

var (
	statusTable     = regexp.MustCompile(`(?s)\n\nExit status:\n+(.*)\z`)
	statusParagraph = regexp.MustCompile(`(?s)\n\n(The exit status is .*?)(\n\n|\z)`)
)

// manualSections takes the exit status out of a command's description. It returns the rest of the
// description, and the sections EXIT STATUS, ENVIRONMENT and FILES.
func manualSections(cmd *cobra.Command, environment, files []Entry) (description, sections string) {
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

func list(title string, entries []Entry, cmd *cobra.Command) string {
	var s strings.Builder
	for _, e := range entries {
		if slices.Contains(e.Commands, cmd.Name()) {
			fmt.Fprintf(&s, ".TP\n\\fB%s\\fP\n%s\n", roff(e.Term), roff(e.Text))
		}
	}
	if s.Len() == 0 {
		return ""
	}
	return ".SH " + title + "\n" + s.String() + "\n"
}

func roff(s string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s) }
