package realtest_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// monitor is a connection on which a master reports every command that it gets.
type monitor struct {
	f     *fleet
	i     int
	lines *bufio.Scanner
	marks int
}

// watch starts MONITOR on every master.
func (f *fleet) watch() (all []*monitor) {
	for i, s := range f.servers {
		conn, err := net.Dial(s.Network(), s.Addr())
		require.NoError(f, err)
		f.Cleanup(func() { _ = conn.Close() })
		require.NoError(f, conn.SetDeadline(time.Now().Add(hang)))
		_, err = conn.Write([]byte("MONITOR\r\n"))
		require.NoError(f, err)
		m := &monitor{f: f, i: i, lines: bufio.NewScanner(conn)}
		require.True(f, m.lines.Scan())
		require.Equal(f, "+OK", m.lines.Text())
		all = append(all, m)
	}
	return all
}

// sent returns the commands that clients have sent since the last look, up to now. It leaves out
// commands that scripts call.
func (m *monitor) sent() []string {
	m.f.Helper()
	return m.look(false)
}

// look returns the commands that were executed since the last look, either by scripts or by
// clients. It marks the present with a command of its own.
func (m *monitor) look(scripts bool) (commands []string) {
	m.f.Helper()
	m.marks++
	mark := fmt.Sprintf("mark %d", m.marks)
	require.NoError(m.f, m.f.admin[m.i].Echo(m.f.ctx, mark).Err())
	for m.lines.Scan() {
		// +1339518083.107412 [0 127.0.0.1:60866] "set" "key" "value"
		_, rest, _ := strings.Cut(m.lines.Text(), " [")
		from, command, ok := strings.Cut(rest, "] ")
		require.True(m.f, ok, m.lines.Text())
		switch {
		case command == fmt.Sprintf("%q %q", "echo", mark):
			return commands
		case strings.HasSuffix(from, " lua") == scripts:
			commands = append(commands, command)
		}
	}
	require.NoError(m.f, m.lines.Err())
	require.FailNow(m.f, "MONITOR ended")
	return nil
}

// quoted formats a command as MONITOR shows it.
func quoted(args ...any) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, fmt.Sprintf("%q", fmt.Sprint(a)))
	}
	return strings.Join(parts, " ")
}

// handshake reports whether a command is part of go-redis' handshake, or asks for the server's
// identity.
func handshake(command string) bool {
	return strings.HasPrefix(command, `"HELLO"`) || strings.HasPrefix(command, `"hello"`) ||
		strings.HasPrefix(command, `"client"`) || command == `"info" "server"`
}

// An uncontended TryAcquire sends exactly SET key value NX PX ttl. A client's first one also
// connects, with a handshake and nothing else.
func TestRealAcquireUncontendedOnTheWire(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{KeyPrefix: "lock:"})
	nodes := f.watch()
	for n, name := range []string{"first", "second"} {
		l := f.acquire(r, name, ttl)
		f.round("acquire", name)
		for _, m := range nodes {
			sent := m.sent()
			for n == 0 && len(sent) > 0 && handshake(sent[0]) {
				sent = sent[1:]
			}
			want := quoted("set", "lock:"+name, l.Value(), "nx", "px", ttl.Milliseconds())
			require.Len(t, sent, 1)
			assert.Equal(t, want, strings.ToLower(sent[0]))
		}
		t.Cleanup(func() { assert.NoError(t, f.release(l)) })
	}
}

// Release and Extend send scripts by their hashes. A refused attempt costs one command a node, and
// one more for its clean-up.
func TestRealReleaseAndExtendOnTheWire(t *testing.T) {
	const itsFlag = `"redlock:queued:{orders}"`
	f := startFleet(t, 5)
	r, other := f.redlock(redlock.Config{}), f.redlock(redlock.Config{})
	f.allGrant(r, "warm up") // connects and fills the script cache
	f.allGrant(other, "warm up too")
	nodes := f.watch()

	l := f.acquire(r, key, ttl)
	f.round("acquire", key)
	for _, m := range nodes {
		m.sent()
	}
	_, err := other.TryAcquire(f.ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	asked := f.cleanedUp(key)
	assert.GreaterOrEqual(t, len(asked), 3)
	for i, m := range nodes {
		sent := m.sent()
		if !slices.Contains(asked, i) {
			assert.Empty(t, sent)
			continue
		}
		require.Len(t, sent, 2)
		assert.Regexp(t, `^"set" "orders" "[0-9a-f-]{36} [0-9]+ [^"]+" "nx" "px" "10000"$`, sent[0])
		assert.Regexp(t, `^"evalsha" "[0-9a-f]{40}" "2" "orders" `+itsFlag+` "[0-9a-f-]{36} [0-9]+ [^"]+"$`, sent[1])
		assert.NotContains(t, sent[0]+sent[1], l.Value())
	}

	require.NoError(t, l.Extend(f.ctx, time.Minute))
	f.round("extend", key)
	for _, m := range nodes {
		sent := m.sent()
		require.Len(t, sent, 1)
		assert.Regexp(t, `^"evalsha" "[0-9a-f]{40}" "1" `+quoted(key, l.Value(), 60000)+`$`, sent[0])
	}

	require.NoError(t, f.release(l))
	f.round("release", key)
	for _, m := range nodes {
		sent := m.sent()
		require.Len(t, sent, 1)
		assert.Regexp(t, `^"evalsha" "[0-9a-f]{40}" "2" "orders" `+itsFlag+` `+quoted(l.Value())+`$`, sent[0])
	}
}
