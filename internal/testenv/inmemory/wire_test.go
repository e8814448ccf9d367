package inmemory_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func everywhere(t *testing.T, f func(t *testing.T, m *inmemory.Master)) {
	t.Helper()
	t.Run("tcp", func(t *testing.T) { f(t, start(t, 1).Master(0)) })
	t.Run("virtual", func(t *testing.T) { inBubble(t, f) })
}

// wire is a connection without a client library. It stays open whatever the reply, whereas
// go-redis closes a connection on which it has read READONLY.
type wire struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func open(t *testing.T, m *inmemory.Master) *wire {
	t.Helper()
	conn, err := m.Client().Options().Dialer(t.Context(), "tcp", m.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn, r: bufio.NewReader(conn)}
}

func (w *wire) send(command ...string) {
	w.t.Helper()
	b := fmt.Sprintf("*%d\r\n", len(command))
	for _, arg := range command {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	_, err := io.WriteString(w.conn, b)
	require.NoError(w.t, err)
}

// receive returns the next reply as it came.
func (w *wire) receive() string {
	w.t.Helper()
	line, err := w.r.ReadString('\n')
	require.NoError(w.t, err)
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:]))
	switch line[0] {
	case '$', '=':
		if n >= 0 {
			rest := make([]byte, n+2)
			_, err = io.ReadFull(w.r, rest)
			require.NoError(w.t, err)
			line += string(rest)
		}
	case '%':
		n *= 2
		fallthrough
	case '*':
		for range n {
			line += w.receive()
		}
	}
	return line
}

func (w *wire) do(command ...string) string {
	w.t.Helper()
	w.send(command...)
	return w.receive()
}
