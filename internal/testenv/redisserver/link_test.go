package redisserver

import (
	"bufio"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// echo starts a server that returns the bytes that it receives, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { defer conn.Close(); _, _ = io.Copy(conn, conn) })
		}
	})
	t.Cleanup(func() { listener.Close(); work.Wait() })
	return listener.Addr().String()
}

type caller struct {
	t    *testing.T
	conn *net.TCPConn
	in   *bufio.Reader
}

func dial(t *testing.T, addr string) caller {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	return caller{t, conn.(*net.TCPConn), bufio.NewReader(conn)}
}

func (c caller) say(line string) {
	c.t.Helper()
	_, err := c.conn.Write([]byte(line + "\n"))
	require.NoError(c.t, err)
}

func (c caller) hear(line string) {
	c.t.Helper()
	got, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	require.Equal(c.t, line+"\n", got)
}

// hearNothing waits for a while, because no event reports that nothing comes.
func (c caller) hearNothing() {
	c.t.Helper()
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded)
	require.NoError(c.t, c.conn.SetReadDeadline(time.Now().Add(30*time.Second)))
}

func requireEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestLinkPassesOn(t *testing.T) {
	l := NewLink(t, echo(t))
	a, b := dial(t, l.Addr()), dial(t, l.Addr())
	a.say("1")
	b.say("2")
	a.hear("1")
	b.hear("2")
	b.say("3")
	require.NoError(t, b.conn.CloseWrite())
	b.hear("3")
	_, err := b.in.ReadByte()
	require.ErrorIs(t, err, io.EOF, "the end is passed on, after the bytes")
}

func TestLinkStall(t *testing.T) {
	l := NewLink(t, echo(t))
	a := dial(t, l.Addr())
	a.say("1")
	a.hear("1")
	l.Stall()
	l.Stall()
	a.say("2")
	b := dial(t, l.Addr())
	b.say("3")
	a.hearNothing()
	l.Resume()
	l.Resume()
	a.hear("2")
	b.hear("3")
}

func TestLinkDelay(t *testing.T) {
	const d = 50 * time.Millisecond
	l := NewLink(t, echo(t))
	a := dial(t, l.Addr())
	for _, set := range []func(time.Duration){l.Delay, l.DelayReplies} {
		start := time.Now()
		set(d)
		a.say("1")
		a.hear("1")
		require.GreaterOrEqual(t, time.Since(start), d)

		a.say("2")
		set(0) // bytes under way stay in front
		a.say("3")
		a.hear("2")
		a.hear("3")
	}
}

func TestLinkRefuse(t *testing.T) {
	l := NewLink(t, echo(t))
	a := dial(t, l.Addr())
	a.say("1")
	a.hear("1")
	l.Refuse()
	l.Refuse()
	_, err := net.Dial("tcp", l.Addr())
	require.Error(t, err)
	a.say("2")
	a.hear("2")
	require.NoError(t, l.Accept())
	require.NoError(t, l.Accept())
	b := dial(t, l.Addr())
	b.say("3")
	b.hear("3")
}

func TestLinkBreak(t *testing.T) {
	l := NewLink(t, echo(t))
	a := dial(t, l.Addr())
	a.say("1")
	a.hear("1")
	l.Stall()
	a.say("2")
	l.Break()
	requireEnd(t, a.conn)
	l.Resume()
	b := dial(t, l.Addr())
	b.say("3")
	b.hear("3")
}

func TestLinkToNobody(t *testing.T) {
	r, err := port.Reserve()
	require.NoError(t, err)
	defer r.Release()
	l := NewLink(t, r.Addr())
	requireEnd(t, dial(t, l.Addr()).conn)
}

func TestLinkClose(t *testing.T) {
	l, err := OpenLink(echo(t))
	require.NoError(t, err)
	a := dial(t, l.Addr())
	a.say("1")
	a.hear("1")
	l.Delay(time.Hour)
	a.say("2")
	l.Stall()
	b := dial(t, l.Addr())
	l.Close() // returns with bytes held and delayed; goleak checks the rest
	l.Close()
	requireEnd(t, a.conn)
	requireEnd(t, b.conn)
	require.Error(t, l.Accept())
}

func TestLinkConcurrentUse(t *testing.T) {
	l := NewLink(t, echo(t))
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			conn, err := net.Dial("tcp", l.Addr())
			if err != nil {
				return // refused
			}
			_, _ = conn.Write([]byte("x"))
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		})
		g.Go(func() { l.Stall(); l.Resume() })
		g.Go(func() { l.Refuse(); _ = l.Accept() })
		g.Go(func() { l.Delay(time.Millisecond); l.DelayReplies(time.Millisecond) })
		g.Go(func() { l.CutReplies(1); l.CutReplies(0, "get") })
	}
	g.Wait()
	l.Delay(0)
	l.DelayReplies(0)
	require.NoError(t, l.Accept())
	a := dial(t, l.Addr())
	a.say("1")
	a.hear("1")
}

// through returns a client that neither retries nor opens a second connection.
func through(s *Server, l *Link) *redis.Client {
	return s.Client(func(o *redis.Options) {
		o.Network, o.Addr = "tcp", l.Addr()
		o.PoolSize = 1
		o.MaxRetries = -1
	})
}

func TestLinkCutsReplies(t *testing.T) {
	s := Start(t, 1)[0]
	l := NewLink(t, s.Addr())
	c, direct := through(s, l), s.Client()
	require.NoError(t, c.Ping(ctx).Err()) // the handshake is over

	l.CutReplies(1)
	require.Error(t, c.Set(ctx, "k", "any", 0).Err())
	require.Equal(t, "any", direct.Get(ctx, "k").Val(), "the command was done")
	require.Zero(t, l.CutsLeft())

	l.CutReplies(2, "set")
	require.NoError(t, c.Get(ctx, "k").Err(), "handshake and other commands pass")
	require.Error(t, c.Set(ctx, "k", "1", 0).Err())
	require.Equal(t, "1", direct.Get(ctx, "k").Val())
	require.Equal(t, 1, l.CutsLeft())
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, "k")
		p.Set(ctx, "k", "2", 0)
		p.Incr(ctx, "behind")
		return nil
	})
	require.Error(t, err)
	require.NoError(t, c.Set(ctx, "k", "3", 0).Err())
	require.Equal(t, "1", direct.Get(ctx, "behind").Val(), "what is pipelined behind is done too")
	require.Zero(t, l.CutsLeft())

	l.CutReplies(1, "set")
	l.CutReplies(0)
	require.NoError(t, c.Set(ctx, "k", "4", 0).Err())
}

// A client's own timeout does not stop a command that is under way.
func TestLinkDeliversLate(t *testing.T) {
	s := Start(t, 1, UnixSocket())[0]
	l := NewLink(t, s.Addr())
	c := s.Client(func(o *redis.Options) {
		o.Network, o.Addr = "tcp", l.Addr()
		o.MaxRetries = -1
		o.ReadTimeout = 20 * time.Millisecond
	})
	require.NoError(t, c.Ping(ctx).Err())
	l.Stall()
	require.ErrorIs(t, c.Set(ctx, "k", "late", 0).Err(), os.ErrDeadlineExceeded)
	require.NoError(t, c.Close())
	require.ErrorIs(t, s.Client().Get(ctx, "k").Err(), redis.Nil)
	l.Resume()
	require.NoError(t, poll(startTimeout, time.Millisecond, func() error { return s.Client().Get(ctx, "k").Err() }))
}

func TestLinkOutlivesItsServer(t *testing.T) {
	s := Start(t, 1)[0]
	l := NewLink(t, s.Addr())
	c := through(s, l)
	require.NoError(t, c.Ping(ctx).Err())
	s.Kill()
	require.Error(t, c.Ping(ctx).Err())
	require.NoError(t, s.Restart())
	require.NoError(t, poll(startTimeout, time.Millisecond, func() error { return c.Ping(ctx).Err() }))
}
