package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

// The manual pages are those of the current commands.
func TestManualPagesAreOfThisVersion(t *testing.T) {
	clitest.ManualIsOf(t, newRoot(), manual, environment, files)
}

func TestManIsWrittenIntoAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "share", "man1")
	code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), "man", folder)
	require.Equal(t, cli.ExitOK, code, stderr)
	assert.Contains(t, stdout, "pages written to "+folder)
	page, err := os.ReadFile(filepath.Join(folder, "redlock-run.1"))
	require.NoError(t, err)
	assert.Contains(t, string(page), "\n.SH EXIT STATUS\n")

	file := filepath.Join(folder, "redlock.1")
	code, _, stderr = clitest.Run(t, t.Context(), newRoot(), "man", file)
	assert.Equal(t, cli.ExitFailed, code)
	clitest.AssertOneLine(t, stderr)
	for _, args := range [][]string{{"man"}, {"man", ""}, {"man", "a", "b"}} {
		code, _, stderr = clitest.Run(t, t.Context(), newRoot(), args...)
		assert.Equal(t, cli.ExitUsage, code)
		clitest.AssertOneLine(t, stderr)
	}
}

// cobra writes the completion scripts.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, stderr := clitest.Run(t, t.Context(), newRoot(), "completion", shell)
		assert.Equal(t, cli.ExitOK, code, stderr)
		assert.Contains(t, stdout, "redlock")
	}
	code, stdout, _ := clitest.Run(t, t.Context(), newRoot(), "__complete", "run", "--kill")
	assert.Equal(t, cli.ExitOK, code)
	assert.Contains(t, stdout, "--kill-grace")
}
