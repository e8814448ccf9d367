package watch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pty opens a terminal. What is written to it can be read from its display.
func pty(t *testing.T) (display, terminal *os.File) {
	display, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = display.Close() })
	require.NoError(t, display.SetDeadline(time.Now().Add(time.Minute)), "so that a test fails and does not hang")
	control, err := display.SyscallConn()
	require.NoError(t, err)
	var number int
	require.NoError(t, control.Control(func(fd uintptr) { // Fd would undo the deadline
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	return display, terminal
}

// On a terminal, the text is drawn in place. It is drawn again when the terminal has another size,
// long before the next look.
func TestWatchOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	display, terminal := pty(t)
	resize := func(columns, rows uint16) {
		require.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
	}
	resize(80, 5)
	f, err := parsed("--watch=1h")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Pictures(ctx, terminal, "redlock status key", func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, "Held: w3 has it\n")
			return err
		})
	}()
	read := bufio.NewReader(display)
	picture := func() string {
		text, err := read.ReadString('J') // the end of erasing the rest
		require.NoError(t, err)
		return text
	}
	first := picture()
	assert.True(t, strings.HasPrefix(first, strings.Repeat("\r\n", 4)+"\x1b[HEvery 1h0m0s: redlock status key, at 2"), "%q", first)
	assert.True(t, strings.HasSuffix(first, "Z\x1b[K\r\n\x1b[K\r\nHeld: w3 has it\x1b[K\r\n\x1b[J"), "%q", first)

	resize(10, 40)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
	assert.Contains(t, picture(), "\x1b[HEvery 1h0m\r\n0s: redloc\r\n")

	cancel()
	require.NoError(t, <-ended)
	line, err := read.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "\r\n", line, "the prompt has a line of its own")
}
