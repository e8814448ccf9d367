//go:build unix

package redisserver

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerDiesWithItsParent(t *testing.T) {
	needServer(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	addr, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
	require.True(t, ok, line)
	defer os.RemoveAll(dir) // a kill leaves only the directory behind

	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	requireEnd(t, conn)
}

// The watchdog is for systems other than Linux, but works on all.
func TestWatchdog(t *testing.T) {
	// The watched process is a cat, whose end shows on its output.
	watched := func(t *testing.T) (*exec.Cmd, io.Reader) {
		cmd := exec.Command("cat")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		cmd.Stdout = w
		require.NoError(t, cmd.Start())
		require.NoError(t, w.Close())
		_, err = stdin.Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(r, make([]byte, 1))
		require.NoError(t, err)
		return cmd, r
	}
	t.Run("kills", func(t *testing.T) {
		cmd, out := watched(t)
		bark, release, err := startWatchdog(cmd.Process.Pid)
		require.NoError(t, err)
		require.NoError(t, bark.Close()) // as the end of this process would
		_, err = out.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		release()
	})
	t.Run("released", func(t *testing.T) {
		cmd, _ := watched(t)
		release, err := watchdog(cmd.Process.Pid)
		require.NoError(t, err)
		release()
		require.NoError(t, cmd.Process.Signal(os.Interrupt), "still there")
	})
}
