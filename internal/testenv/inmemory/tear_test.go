package inmemory_test

import (
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// set is the command that go-redis sends for each key of pipelined.
const set = "*3\r\n$3\r\nset\r\n$4\r\nkey1\r\n$5\r\nvalue\r\n"

// pipelined sends a SET of each key in one go. It returns how many replies arrived; go-redis
// keeps these even if it returns an error.
func pipelined(t *testing.T, c *redis.Conn, keys ...string) (replies int, err error) {
	t.Helper()
	cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, key := range keys {
			p.Set(t.Context(), key, "value", 0)
		}
		return nil
	})
	for _, cmd := range cmds {
		if cmd.(*redis.StatusCmd).Val() == "OK" {
			replies++
		}
	}
	return replies, err
}

// pinned returns a connection of a client on the path, ready for a command.
func pinned(t *testing.T, p *inmemory.Path, configure ...func(*redis.Options)) *redis.Conn {
	t.Helper()
	c := connected(t, p, configure...).Conn()
	require.NoError(t, c.Ping(t.Context()).Err())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// tornOnce cuts the n-th message in a direction, and records its length in long.
func tornOnce(p *inmemory.Path, in faultlink.Direction, n, arrive int) (long *int) {
	var mu sync.Mutex
	long = new(int)
	p.Tear(func(d faultlink.Direction, bytes int) int {
		mu.Lock()
		defer mu.Unlock()
		if d == in {
			if n--; n == 0 {
				*long = bytes
				return arrive
			}
		}
		return bytes
	})
	return long
}

// Exactly the commands before the cut are executed and answered, wherever the cut is.
func TestATornRequestIsExecutedUpToTheCut(t *testing.T) {
	keys := []string{"key1", "key2", "key3"}
	for arrive := range len(keys)*len(set) + 1 {
		inBubble(t, func(t *testing.T, m *inmemory.Master) {
			p := m.Path()
			c := pinned(t, p)
			long := tornOnce(p, faultlink.ToServer, 1, arrive)
			replies, err := pipelined(t, c, keys...)
			synctest.Wait()
			require.Equal(t, len(keys)*len(set), *long)
			whole := arrive / len(set)
			require.Equal(t, keys[:whole], append([]string{}, m.Miniredis().Keys()...), "cut after %d bytes", arrive)
			require.Equal(t, whole, replies)
			if whole < len(keys) {
				require.ErrorIs(t, err, io.EOF)
				require.Error(t, c.Ping(t.Context()).Err(), "the connection is cut")
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// All commands are executed. The client gets the replies before the cut.
func TestATornReplyIsReadUpToTheCut(t *testing.T) {
	keys := []string{"key1", "key2", "key3"}
	for torn := range keys {
		for arrive := range len("+OK\r\n") + 1 {
			inBubble(t, func(t *testing.T, m *inmemory.Master) {
				p := m.Path()
				c := pinned(t, p)
				long := tornOnce(p, faultlink.ToClient, 1+torn, arrive)
				replies, err := pipelined(t, c, keys...)
				synctest.Wait()
				require.Equal(t, len("+OK\r\n"), *long)
				require.Equal(t, keys, m.Miniredis().Keys())
				if arrive < len("+OK\r\n") {
					require.Equal(t, torn, replies, "%d bytes of the next arrived", arrive)
					require.ErrorIs(t, err, io.EOF)
					require.Error(t, c.Ping(t.Context()).Err(), "the connection is cut")
				} else {
					require.Equal(t, len(keys), replies)
					require.NoError(t, err)
				}
			})
		}
	}
}

// The end of the connection arrives after the bytes that arrive, which are as late as without
// a cut.
func TestTornCommandsTakeTheirTime(t *testing.T) {
	for _, in := range []faultlink.Direction{faultlink.ToServer, faultlink.ToClient} {
		inBubble(t, func(t *testing.T, m *inmemory.Master) {
			p := m.Path()
			c := pinned(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
			shaped(p, time.Minute, time.Second)
			tornOnce(p, in, 1, len(set)+1)
			if in == faultlink.ToClient {
				tornOnce(p, in, 2, 1)
			}
			begin := time.Now()
			replies, err := pipelined(t, c, "key1", "key2")
			require.Equal(t, time.Minute+time.Second, time.Since(begin))
			require.Equal(t, 1, replies)
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// f is called for a handshake, but not for a dial or for something lost.
func TestTearIsAskedOncePerMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		var mu sync.Mutex
		var asked []faultlink.Direction
		p.Tear(func(d faultlink.Direction, bytes int) int {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, d)
			return 2 * bytes // the same as all of them
		})
		c := p.Client(once, func(o *redis.Options) { o.DisableIdentity = true }).Conn()
		defer c.Close()
		require.NoError(t, c.Ping(t.Context()).Err())
		one := []faultlink.Direction{faultlink.ToServer, faultlink.ToClient}
		require.Equal(t, slices.Concat(one, one), asked)
		asked = nil
		replies, err := pipelined(t, c, "key1", "key2")
		require.NoError(t, err)
		require.Equal(t, 2, replies)
		require.ElementsMatch(t, append(one, faultlink.ToClient), asked)
		asked = nil
		losing(p, faultlink.ToClient)
		require.Error(t, c.Ping(t.Context()).Err())
		require.Equal(t, one[:1], asked)
	})
}
