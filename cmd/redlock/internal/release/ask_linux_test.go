package release

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/cli/clitest"
)

// typedTerminal returns a terminal on which a user has typed.
func typedTerminal(s *clitest.Shell, typed string) *os.File {
	s.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s, err)
	s.Cleanup(func() { assert.NoError(s, keyboard.Close()) })
	fd := int(keyboard.Fd())
	require.NoError(s, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(s, err)
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(s, err)
	s.Cleanup(func() { _ = screen.Close() })
	_, err = keyboard.WriteString(typed)
	require.NoError(s, err)
	return screen
}

func TestReleaseAsks(t *testing.T) {
	for answer, yes := range map[string]bool{
		"yes\n": true, " YES \r\n": true,
		"y\n": false, "no\n": false, "\n": false, "orders\n": false, "\x04": false, // end of input
	} {
		s := clitest.NewShell(t, Command, 3)
		s.Lays("orders", "AAA")
		stdin(t, typedTerminal(s, answer))
		code, stdout, stderr := s.Types("release", "--force", "orders")
		assert.Contains(t, stdout, "Held: ")
		assert.Contains(t, stderr, "\nIs its holder dead? Type yes to break this lock: ")
		if yes {
			assert.Equal(t, cli.ExitOK, code, "%q: %s", answer, stderr)
			assert.Empty(t, s.Has("orders"))
			continue
		}
		assert.Equal(t, cli.ExitFailed, code, "%q", answer)
		assert.Contains(t, stderr, `redlock: release "orders": not broken, the answer was not yes`)
		assert.Equal(t, []int{0, 1, 2}, s.Has("orders"), "%q", answer)
	}
}

// The lock changes hands while the operator thinks. The next holder keeps it.
func TestReleaseWhenTheLockHasChangedHands(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AAA")
	stdin(t, typedTerminal(s, "yes\n"))
	s.Said = func(text string) {
		if strings.Contains(text, "Type yes") {
			s.Lays("orders", "BBB")
		}
	}
	code, stdout, stderr := s.Types("release", "--force", "orders")
	assert.Equal(t, cli.ExitOK, code, stderr)
	assert.Contains(t, stdout, "\nNothing was deleted: since it was shown it has ended by itself, or changed\nhands.\n")
	assert.Contains(t, stdout, "\nNow held: "+clitest.Named("B")+" has it on 3 of 3 masters")
	assert.NotContains(t, stdout, "Check now")
	assert.Equal(t, []int{0, 1, 2}, s.Has("orders"))
}

// An interrupt at the question does not wait for an answer.
func TestReleaseIsInterrupted(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	s.Lays("orders", "AAA")
	screen := typedTerminal(s, "")
	stdin(t, screen)
	ctx, cancel := context.WithCancel(t.Context())
	var errs strings.Builder
	interrupting := clitest.Saying{Writer: &errs, Said: func(text string) {
		if strings.Contains(text, "Type yes") {
			cancel()
		}
	}}
	assert.Equal(t, cli.ExitFailed, cli.Run(ctx, clitest.Program(Command()), []string{"release", "--force", "orders"}, &strings.Builder{}, interrupting))
	assert.Contains(t, errs.String(), `redlock: release "orders": not broken`)
	assert.Len(t, s.Has("orders"), 3)
	require.NoError(t, screen.Close()) // the user has gone, and nobody reads it
}

func TestReleaseOfAFreeKey(t *testing.T) {
	s := clitest.NewShell(t, Command, 3)
	stdin(t, typedTerminal(s, ""))
	code, stdout, stderr := s.Types("release", "--force", "orders")
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, stderr, "nobody is asked")
	assert.Contains(t, stdout, "Free: 3 of 3 masters do not have it, so nobody holds it.\n\nThere is nothing to break.\n")
}
