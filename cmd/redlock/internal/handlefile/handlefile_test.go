package handlefile

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	one = "redlock1.BGFwcDoGb3JkZXJzNzVmMGM3YTFlLTAwMDAtNDAwMC04MDAwLTAxMjM0NTY3ODlhYiAxNzAwMDAwMDAwIGhvc3QvMTeBgPnAwcSCA8DPJOf6ILXYRKZnoRFW"
	two = "redlock1.another"
)

func TestReadOfAFileOrStdin(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	file, err := Create(name)
	require.NoError(t, err)
	require.NoError(t, Write(file, one))
	for source, stdin := range map[string]io.Reader{name: nil, Stdin: strings.NewReader(" " + one + "\r\n")} {
		h, err := Read(t.Context(), source, stdin, func(text string) { t.Error(text) })
		require.NoError(t, err)
		assert.Equal(t, one, h.Text)
		assert.Equal(t, "orders", h.Key)
		assert.Equal(t, "app:", h.KeyPrefix)
		assert.Equal(t, 10*time.Minute, h.TTL)
	}
}

func TestReadQuotesNothing(t *testing.T) {
	for _, text := range []string{one[:60], one + one, "", "garbage", strings.Repeat(one, 1000)} {
		_, err := Read(t.Context(), Stdin, strings.NewReader(text), nil)
		require.ErrorContains(t, err, "stdin has no handle that can be used")
		assert.Less(t, len(err.Error()), 150)
		assert.NotContains(t, err.Error(), "BGFwcDoG")
	}
}

// stdin may be a pipe that nobody writes to.
func TestReadEndsWithItsContext(t *testing.T) {
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Read(ctx, Stdin, in, nil)
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, out.Close())
}

func TestReplaceIsWholeOrNotAtAll(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "lock")
	require.NoError(t, os.WriteFile(name, []byte(one), 0o644))
	require.NoError(t, Replace(name, two))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, two+"\n", string(text))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	target := filepath.Join(folder, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(target, "full"), 0o700))
	require.Error(t, Replace(target, two), "a folder is in the way")
	require.Error(t, Replace(filepath.Join(folder, "nowhere", "lock"), two))
	all, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, all, 2, "no file is left behind")
}
