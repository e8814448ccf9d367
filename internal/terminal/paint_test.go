package terminal

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestColourNeedsATerminalThatWantsIt(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as terminals are
	require.NoError(t, err)
	defer null.Close()
	file, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	defer file.Close()

	assert.True(t, colourful(terminal, env("TERM", "xterm")))
	assert.False(t, colourful(terminal, env("TERM", "xterm", "NO_COLOR", "1")))
	assert.False(t, colourful(terminal, env("TERM", "dumb")))
	assert.False(t, colourful(null, env("TERM", "xterm")))
	assert.False(t, colourful(file, env("TERM", "xterm")))
	assert.False(t, colourful(&bytes.Buffer{}, env("TERM", "xterm")))
}
