package inmemory_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func names(commands [][]string) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c[0])
	}
	return names
}

func TestCommandsAreThoseThatWereSent(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Client(func(o *redis.Options) { o.DB = 3 })
	require.NoError(t, c.Ping(t.Context()).Err())
	require.Subset(t, names(m.Commands()), []string{"HELLO", "CLIENT", "SELECT", "PING"})

	script := "redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])"
	require.Equal(t, "v", c.Eval(t.Context(), script, []string{"k"}, "v").Val())
	_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Incr(t.Context(), "n").Err() })
	require.NoError(t, err)
	// Another connection may have sent its handshake meanwhile.
	log := slices.DeleteFunc(m.Commands(), func(c []string) bool {
		return slices.Contains([]string{"HELLO", "CLIENT", "SELECT"}, c[0])
	})
	require.Equal(t, [][]string{
		{"PING"},
		{"EVAL", script, "1", "k", "v"}, // without the commands that the script calls
		{"MULTI"}, {"INCR", "n"}, {"EXEC"},
	}, log)

	m.Commands()[0][0] = "the caller's own"
	require.Equal(t, "HELLO", m.Commands()[0][0])
	m.ResetCommands()
	require.Empty(t, m.Commands())
}

// The link parses the same commands as the server, in pieces of any size.
func TestCommandsOnTheWire(t *testing.T) {
	for _, tt := range []struct {
		name, sent, replies string
		names               []string
	}{
		{"one", "*1\r\n$4\r\nping\r\n", "+PONG\r\n", []string{"PING"}},
		{"two", "*1\r\n$4\r\nping\r\n*2\r\n$3\r\nget\r\n$0\r\n\r\n", "+PONG\r\n$-1\r\n", []string{"PING", "GET"}},
		{"binary", "*2\r\n$4\r\necho\r\n$4\r\n\r\n*\x00\r\n", "$4\r\n\r\n*\x00\r\n", []string{"ECHO"}},
		{"an empty array is nothing", "*0\r\n*-1\r\n*1\r\n$4\r\nping\r\n", "+PONG\r\n", []string{"PING"}},
		{"half a command is nothing", "*1\r\n$4\r\nping\r\n*2\r\n$3\r\nget\r\n$5\r\nab", "+PONG\r\n", []string{"PING"}},
	} {
		for _, size := range []int{1, 7, len(tt.sent)} {
			t.Run(fmt.Sprintf("%s by %d", tt.name, size), func(t *testing.T) {
				m := start(t, 1).Master(0)
				conn := dial(t, m)
				for rest := []byte(tt.sent); len(rest) > 0; {
					n, err := conn.Write(rest[:min(size, len(rest))])
					require.NoError(t, err)
					rest = rest[n:]
				}
				require.NoError(t, conn.CloseWrite())
				replies, err := io.ReadAll(conn)
				require.NoError(t, err)
				require.Equal(t, tt.replies, string(replies))
				require.Equal(t, tt.names, names(m.Commands()))
			})
		}
	}
}

// As on a server, bytes that are no command end their connection, and no other.
func TestGarbageOnTheWire(t *testing.T) {
	m := start(t, 1).Master(0)
	for _, sent := range []string{"GET key\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n", "*x\r\n", "*1\r\n$9999999999\r\n", "\r\n", "\x16\x03\x01"} {
		conn := dial(t, m)
		_, err := io.WriteString(conn, sent)
		require.NoError(t, err)
		replies, _ := io.ReadAll(conn)
		require.Empty(t, replies, "%q", sent)
	}
	require.Empty(t, m.Commands())
	require.NoError(t, m.Client().Ping(t.Context()).Err())
}

func dial(t *testing.T, m *inmemory.Master) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", m.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}
