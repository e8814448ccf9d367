package subject

import (
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

// The count does not depend on where writes cut the stream, or on the arguments.
func TestRequestsAreCountedHoweverTheyAreWritten(t *testing.T) {
	var stream []byte
	for _, args := range [][]string{
		{"SET", "k", "v"}, {"PING"}, {"SET", "k", "*3\r\n$1\r\na\r\n"}, {"SET", "k", ""}, {"GET", "\r\n*"},
	} {
		stream = appendCommand(stream, args...)
	}
	for size := 1; size <= len(stream); size++ {
		var n atomic.Int64
		r := requests{sent: &n}
		for at := 0; at < len(stream); at += size {
			r.note(stream[at:min(at+size, len(stream))])
		}
		require.EqualValues(t, 5, n.Load(), "in pieces of %d bytes", size)
		require.Zero(t, r.skip)
	}
}

// Every command of a pipeline counts, and so does a subscription, which hooks do not see.
func TestWhatAClientSendsIsCounted(t *testing.T) {
	server := redisserver.Start(t, 1)[0]
	sent := new(Sent)
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: sent.dial, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	ctx := t.Context()
	require.NoError(t, c.Ping(ctx).Err())
	during := func(f func()) int64 {
		before := sent.Commands()
		f()
		return sent.Commands() - before
	}
	assert.EqualValues(t, 1, during(func() { require.NoError(t, c.Set(ctx, "k", "v", 0).Err()) }))
	pipeline := func() {
		p := c.Pipeline()
		for range 3 {
			p.Get(ctx, "k")
		}
		_, err := p.Exec(ctx)
		require.NoError(t, err)
	}
	pipeline() // go-redis uses separate connections for pipelines
	assert.EqualValues(t, 3, during(pipeline))
	s := c.Subscribe(ctx, "some")
	t.Cleanup(func() { _ = s.Close() })
	_, err := s.Receive(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 1, during(func() {
		require.NoError(t, s.Subscribe(ctx, "more"))
		_, err := s.Receive(ctx)
		require.NoError(t, err)
	}))
}

func TestNobodyCountsNothing(t *testing.T) {
	var none *Sent
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	c, err := none.dial(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	assert.IsType(t, &net.TCPConn{}, c)
	assert.NoError(t, c.Close())
	assert.Zero(t, none.Commands())
}
