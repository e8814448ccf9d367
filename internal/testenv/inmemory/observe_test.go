package inmemory

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// pairs records each exchange as "COMMAND args = reply".
type pairs struct {
	mu    sync.Mutex
	list  []string
	paths []*Path
}

func (p *pairs) note(x Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, strings.Join(x.Command, " ")+" = "+strings.ReplaceAll(string(x.Reply), "\r\n", "|"))
	p.paths = append(p.paths, x.Path)
}

// taken returns the exchanges since its last call.
func (p *pairs) taken() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list, p.paths = nil, nil
	return list
}

// observed runs f in a bubble. Its client already has a connection when the observer is set.
func observed(t *testing.T, f func(t *testing.T, m *Master, c *redis.Conn, p *pairs), configure ...func(*redis.Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := StartVirtual(t, 1).Master(0)
		c := m.Client(configure...).Conn()
		defer c.Close()
		require.NoError(t, c.Ping(t.Context()).Err())
		p := &pairs{}
		m.Observe(p.note)
		f(t, m, c, p)
	})
}

func resp2(o *redis.Options) { o.Protocol = 2 }

func TestObserveBeginsOnAnOldConnection(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		require.NoError(t, c.Get(t.Context(), "key").Err())
		require.Equal(t, []string{"SET key value = +OK|", "GET key = $5|value|"}, p.taken())
	})
}

func TestObserveSeesHandshakes(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, _ *redis.Conn, p *pairs) {
		require.NoError(t, m.Client(func(o *redis.Options) { o.DisableIdentity = true }).Ping(t.Context()).Err())
		list := p.taken()
		require.Len(t, list, 2)
		require.Contains(t, list[0], "HELLO 3 = %7|", "a map")
		require.Equal(t, "PING = +PONG|", list[1])
	})
}

func TestObservePairsEveryKindOfReply(t *testing.T) {
	for protocol, null := range map[int]string{2: "$-1|", 3: "_|"} {
		observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
			large := strings.Repeat("x", 10_000)
			var args []any
			var members strings.Builder
			for range 1000 {
				args = append(args, "member")
				members.WriteString("$6|member|")
			}
			_, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
				pipe.Get(t.Context(), "none")
				pipe.Set(t.Context(), "large", large, 0)
				pipe.Get(t.Context(), "large")
				pipe.RPush(t.Context(), "list", args...)
				pipe.LRange(t.Context(), "list", 0, -1)
				pipe.Incr(t.Context(), "list")
				pipe.Eval(t.Context(), "return {1, {2, {}, {'three'}}, 4}", nil)
				pipe.Ping(t.Context())
				return nil
			})
			require.Error(t, err)
			list := p.taken()
			for i, command := range list {
				if len(command) > 100 && strings.HasPrefix(command, "RPUSH") {
					list[i] = command[strings.Index(command, "="):]
				}
			}
			require.Equal(t, []string{
				"GET none = " + null,
				"SET large " + large + " = +OK|",
				"GET large = $10000|" + large + "|",
				"= :1000|",
				"LRANGE list 0 -1 = *1000|" + members.String(),
				"INCR list = -WRONGTYPE Operation against a key holding the wrong kind of value|",
				"EVAL return {1, {2, {}, {'three'}}, 4} 0 = *3|:1|*3|:2|*0|*1|$5|three|:4|",
				"PING = +PONG|",
			}, list)
		}, func(o *redis.Options) { o.Protocol = protocol })
	}
}

func TestObservePairsMaps(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		require.NoError(t, c.HSet(t.Context(), "hash", "field", "value").Err())
		require.NoError(t, c.HGetAll(t.Context(), "hash").Err())
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, []string{"HSET hash field value = :1|", "HGETALL hash = %1|$5|field|$5|value|", "PING = +PONG|"}, p.taken())
	})
}

func TestObservePairsTransactions(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		_, err := c.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error {
			pipe.Incr(t.Context(), "n")
			pipe.Get(t.Context(), "n")
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Equal(t, []string{"MULTI = +OK|", "INCR n = +QUEUED|", "GET n = +QUEUED|", "EXEC = *2|:1|$1|1|", "PING = +PONG|"}, p.taken())
	})
}

// A subscriber gets messages that answer no command, in RESP3 as pushes and in RESP2 as
// arrays, even before the reply to a command that it has sent.
func TestObservePairsOnASubscribersConnection(t *testing.T) {
	for name, want := range map[string]struct{ protocol, mark string }{"RESP2": {"2", "*"}, "RESP3": {"3", ">"}} {
		t.Run(name, func(t *testing.T) {
			observed(t, func(t *testing.T, m *Master, _ *redis.Conn, p *pairs) {
				c := m.Client(func(o *redis.Options) { o.Protocol = int(want.protocol[0] - '0'); o.DisableIdentity = true })
				sub := c.Subscribe(t.Context(), "a", "b")
				defer sub.Close()
				list := p.taken()
				require.Equal(t, "SUBSCRIBE a b = "+want.mark+"3|$9|subscribe|$1|a|:1|"+want.mark+"3|$9|subscribe|$1|b|:2|", list[len(list)-1])

				m.Miniredis().Publish("a", "hello")
				require.NoError(t, sub.Ping(t.Context(), "1"))
				m.Miniredis().Publish("b", "hello")
				require.NoError(t, sub.PSubscribe(t.Context(), "c*"))
				m.Miniredis().Publish("cc", "hello")
				require.NoError(t, sub.PUnsubscribe(t.Context(), "c*"))
				require.NoError(t, sub.Unsubscribe(t.Context(), "a", "b"))
				require.NoError(t, sub.Ping(t.Context(), "2"))
				require.Equal(t, []string{
					"PING 1 = *2|$4|pong|$1|1|",
					"PSUBSCRIBE c* = " + want.mark + "3|$10|psubscribe|$2|c*|:3|",
					"PUNSUBSCRIBE c* = " + want.mark + "3|$12|punsubscribe|$2|c*|:2|",
					"UNSUBSCRIBE a b = " + want.mark + "3|$11|unsubscribe|$1|a|:1|" + want.mark + "3|$11|unsubscribe|$1|b|:0|",
					"PING 2 = $1|2|",
				}, p.taken())
			})
		})
	}
}

// A list may look like a message, but its reader is not a subscriber.
func TestObserveTakesAListForAReply(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		require.NoError(t, c.RPush(t.Context(), "list", "message", "a", "b").Err())
		require.NoError(t, c.LRange(t.Context(), "list", 0, -1).Err())
		require.Equal(t, "LRANGE list 0 -1 = *3|$7|message|$1|a|$1|b|", p.taken()[1])
	}, resp2)
}

func TestObserveNamesThePath(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		one, two := m.Path(), m.Path()
		for _, client := range []redis.Cmdable{one.Client().Conn(), two.Client().Conn()} {
			require.NoError(t, client.Ping(t.Context()).Err())
		}
		require.NoError(t, c.Ping(t.Context()).Err())
		synctest.Wait()
		of := map[*Path]int{}
		for _, path := range p.paths {
			of[path]++
		}
		require.Len(t, of, 3)
		require.Equal(t, 1, of[nil])
		require.Equal(t, of[one], of[two])
	})
}

// The observer sees the effect of the command before its client has a reply, and even if the
// client never gets one.
func TestObserveComesBetweenExecutionAndReply(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		answered := false
		m.Observe(func(x Exchange) {
			value, err := m.Miniredis().Get("key")
			if err != nil || value != "value" || answered {
				t.Errorf("%v: %q, %v, answered: %v", x.Command, value, err, answered)
			}
			p.note(x)
		})
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		answered = true
		require.Len(t, p.taken(), 1)

		answered = false
		m.LoseReplies(1)
		require.Error(t, c.Append(t.Context(), "key", "").Err())
		require.Equal(t, []string{"APPEND key  = :5|"}, p.taken())
	}, func(o *redis.Options) { o.MaxRetries = -1 })
}

// A command is not observed until it is executed.
func TestObserveWaitsForTheExecution(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		m.Stall()
		require.Error(t, c.Incr(t.Context(), "n").Err())
		require.Empty(t, p.taken())
		m.Resume()
		require.Equal(t, []string{"INCR n = :1|"}, p.taken())
	}, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })
}

func TestObserveNilStops(t *testing.T) {
	observed(t, func(t *testing.T, m *Master, c *redis.Conn, p *pairs) {
		require.NoError(t, c.Ping(t.Context()).Err())
		m.Observe(nil)
		require.NoError(t, c.Incr(t.Context(), "n").Err())
		m.Observe(p.note)
		require.NoError(t, c.Get(t.Context(), "n").Err())
		require.Equal(t, []string{"PING = +PONG|", "GET n = $1|1|"}, p.taken())
	})
}
