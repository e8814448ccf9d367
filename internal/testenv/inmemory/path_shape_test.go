package inmemory_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestShapeIsExactInEachDirection(t *testing.T) {
	const request, reply = 7 * time.Millisecond, 11 * time.Millisecond
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, request, reply)
		begin := time.Now()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		require.Equal(t, request+reply, time.Since(begin))
		require.Equal(t, time.Second-reply, m.Miniredis().TTL("key"), "set when the request arrived")

		m.Delay(time.Millisecond, 2*time.Millisecond) // the master's delays come on top
		begin = time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, request+reply+3*time.Millisecond, time.Since(begin))

		m.Delay(0, 0)
		p.Shape(nil)
		begin = time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Zero(t, time.Since(begin))
	})
}

// f is called once for the dial, once for the handshake and once for the command.
func TestShapeIsAskedOncePerMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		var mu sync.Mutex
		asked := map[faultlink.Direction]int{}
		p.Shape(func(d faultlink.Direction) (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			asked[d]++
			return time.Millisecond, false
		})
		c := p.Client(once, func(o *redis.Options) { o.DisableIdentity = true; o.Protocol = 3 })
		begin := time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, map[faultlink.Direction]int{faultlink.ToServer: 3, faultlink.ToClient: 2}, asked)
		require.Equal(t, 5*time.Millisecond, time.Since(begin))

		for range 2 { // the first iteration gets a connection of its own
			clear(asked)
			_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
				pipe.Ping(t.Context())
				pipe.Ping(t.Context())
				return nil
			})
			require.NoError(t, err)
		}
		require.Equal(t, map[faultlink.Direction]int{faultlink.ToServer: 1, faultlink.ToClient: 2}, asked)
	})
}

// The second request or reply is faster than the first, and still arrives after it.
func TestShapeKeepsOrderOnAConnection(t *testing.T) {
	for name, slow := range map[string]faultlink.Direction{"requests": faultlink.ToServer, "replies": faultlink.ToClient} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *inmemory.Master) {
				p := m.Path()
				sub := p.Client(once).Subscribe(t.Context(), "first")
				defer sub.Close()
				_, err := sub.Receive(t.Context())
				require.NoError(t, err)
				delays := map[faultlink.Direction][]time.Duration{slow: {time.Second, time.Millisecond}}
				var mu sync.Mutex
				p.Shape(func(d faultlink.Direction) (delay time.Duration, _ bool) {
					mu.Lock()
					defer mu.Unlock()
					if len(delays[d]) > 0 {
						delay, delays[d] = delays[d][0], delays[d][1:]
					}
					return delay, false
				})
				begin := time.Now()
				require.NoError(t, sub.Subscribe(t.Context(), "slow"))
				synctest.Wait()
				require.NoError(t, sub.Subscribe(t.Context(), "fast"))
				for _, want := range []string{"slow", "fast"} {
					got, err := sub.Receive(t.Context())
					require.NoError(t, err)
					require.Equal(t, want, got.(*redis.Subscription).Channel)
					require.Equal(t, time.Second, time.Since(begin))
				}
			})
		})
	}
}

func TestLostRequestIsNotExecutedAndCutsItsConnection(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		losing(p, faultlink.ToServer)
		require.ErrorIs(t, c.Set(t.Context(), "key", "value", 0).Err(), io.EOF)
		p.Shape(nil)
		require.Empty(t, m.Miniredis().Keys())
		m.ResetCommands()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, "HELLO", m.Commands()[0][0], "a new connection")
	})
}

func TestLostReplyIsExecutedAndCutsItsConnection(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		losing(p, faultlink.ToClient)
		require.ErrorIs(t, c.Set(t.Context(), "key", "value", 0).Err(), io.EOF)
		p.Shape(nil)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
		m.ResetCommands()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, "HELLO", m.Commands()[0][0], "a new connection")
	})
}

// TCP sends a lost SYN again.
func TestDiallingIsNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		dials := 0
		p.Shape(func(faultlink.Direction) (time.Duration, bool) { dials++; return time.Second, dials == 1 })
		begin := time.Now()
		require.NoError(t, p.Client(once, func(o *redis.Options) { o.DisableIdentity = true }).Ping(t.Context()).Err())
		require.Equal(t, 5*time.Second, time.Since(begin), "the dial, the handshake and the command")
	})
}

func TestDiallingASlowPathEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		shaped(p, time.Minute, 0)
		begin := time.Now()
		require.Error(t, p.Client(inTime).Ping(t.Context()).Err())
		require.Equal(t, time.Second, time.Since(begin))
	})
}
