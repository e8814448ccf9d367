package acquire

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

// A handle that cannot be written is of no use to anybody, so the lock is released again.
func TestAcquireReleasesWhatItCannotHandOver(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	nodes := strings.Join(s.Masters.URLs(), ",")
	for _, format := range []string{"--json=false", "--json"} {
		var stderr bytes.Buffer
		code := cli.Run(t.Context(), clitest.Program(Command()), []string{"acquire", "--nodes", nodes, "--ttl", "1h", format, "orders"}, clitest.FullDisk{}, &stderr)
		assert.Equal(t, cli.ExitFailed, code)
		clitest.AssertOneLine(t, stderr.String())
		assert.Contains(t, stderr.String(), "no space left on device; the lock was released")
		assert.NotContains(t, stderr.String(), "redlock1.")
		assert.Empty(t, s.Has("orders"))
	}

	// The masters are gone when it is to be released.
	var stderr bytes.Buffer
	code := cli.Run(t.Context(), clitest.Program(Command()), []string{"acquire", "--nodes", nodes, "--ttl", "1h", "orders"}, dying{s}, &stderr)
	assert.Equal(t, cli.ExitFailed, code)
	clitest.AssertOneLine(t, stderr.String())
	assert.Contains(t, stderr.String(), "and the lock, which nobody can release now, lasts for 1h0m0s at most")
}

// dying is a full disk, on which the masters depend.
type dying struct{ *clitest.Shell }

func (d dying) Write(p []byte) (int, error) {
	d.Masters.Kill(0, 1)
	return clitest.FullDisk{}.Write(p)
}

// A key that is too long for a handle is not left behind either.
func TestAcquireOfAVeryLongKey(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	key := strings.Repeat("k", 20<<10)
	file := filepath.Join(t.TempDir(), "lock")
	code, stdout, stderr := s.Types("acquire", "--ttl", "1h", "--handle-file", file, key)
	assert.Equal(t, cli.ExitFailed, code)
	assert.Empty(t, stdout)
	clitest.AssertOneLine(t, stderr)
	assert.Contains(t, stderr, "is too long")
	assert.Empty(t, s.Has(key))
	assert.NoFileExists(t, file)
}

// The file is there before any master is asked, and only its owner may read it.
func TestAcquireWritesAFileOfItsOwn(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	file := filepath.Join(t.TempDir(), "lock")
	code, stdout, stderr := s.Types("acquire", "--ttl", "1h", "--handle-file", file, "orders")
	require.Equal(t, cli.ExitOK, code, stderr)
	assert.Empty(t, stdout)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	before, err := os.ReadFile(file)
	require.NoError(t, err)

	code, _, stderr = s.Types("acquire", "--ttl", "1h", "--handle-file", file, "another")
	assert.Equal(t, cli.ExitUsage, code)
	assert.Contains(t, stderr, "exists")
	assert.Empty(t, s.Has("another"))
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, before, after)

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), link))
	code, _, _ = s.Types("acquire", "--ttl", "1h", "--handle-file", link, "another")
	assert.Equal(t, cli.ExitUsage, code, "it follows no link to a place that somebody else has chosen")
}
