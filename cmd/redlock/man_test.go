package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the manual pages anew")

// The pages are those of the commands as they are.
func TestManualPagesAreOfThisVersion(t *testing.T) {
	root := newRoot()
	root.DisableAutoGenTag = true
	root.InitDefaultVersionFlag()
	pages := map[string][]byte{}
	for _, cmd := range append([]*cobra.Command{root}, root.Commands()...) {
		if cmd.Name() == "help" {
			continue
		}
		when := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
		header := &doc.GenManHeader{Section: "1", Source: "redlock", Manual: "User Commands", Date: &when}
		sections := ""
		cmd.Long, sections = manualSections(cmd)
		var page bytes.Buffer
		cmd.DisableAutoGenTag = true
		require.NoError(t, doc.GenMan(cmd, header, &page))
		name := "redlock.1"
		if cmd != root {
			name = "redlock-" + cmd.Name() + ".1"
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
	entries, err := manual.ReadDir("man")
	require.NoError(t, err)
	assert.Len(t, entries, len(pages))
	for name, want := range pages {
		page, err := manual.ReadFile("man/" + name)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(page), "go test ./cmd/redlock -run Manual -update")
	}
}

func TestManIsWrittenIntoAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "share", "man1")
	code, stdout, stderr := runArgs(t, t.Context(), "man", folder)
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "pages written to "+folder)
	page, err := os.ReadFile(filepath.Join(folder, "redlock-run.1"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "\n.SH EXIT STATUS\n")

	file := filepath.Join(folder, "redlock.1")
	code, _, stderr = runArgs(t, t.Context(), "man", file)
	assert.Equal(t, exitFailed, code)
	assertOneLine(t, stderr)
	for _, args := range [][]string{{"man"}, {"man", ""}, {"man", "a", "b"}} {
		code, _, stderr = runArgs(t, t.Context(), args...)
		assert.Equal(t, exitUsage, code)
		assertOneLine(t, stderr)
	}
}

// Completion scripts are cobra's.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := runArgs(t, t.Context(), "completion", shell)
		assert.Equal(t, exitOK, code, stderr)
		assert.Contains(t, stdout, "redlock")
	}
	code, stdout, _ := runArgs(t, t.Context(), "__complete", "run", "--kill")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "--kill-grace")
}
