package inmemory_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// resp2 makes a client speak RESP2, in which messages are arrays.
func resp2(o *redis.Options) { o.Protocol = 2 }

// subscribed returns a client's confirmed subscription to the channel "wake".
func subscribed(t *testing.T, c *redis.Client) *redis.PubSub {
	t.Helper()
	sub := c.Subscribe(t.Context(), "wake")
	t.Cleanup(func() { _ = sub.Close() })
	confirmed, err := sub.Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, &redis.Subscription{Kind: "subscribe", Channel: "wake", Count: 1}, confirmed)
	return sub
}

// wake publishes a message from a script, and returns how many receivers it had.
func wake(t *testing.T, c redis.Scripter, message string) int {
	t.Helper()
	n, err := redis.NewScript("return redis.call('PUBLISH', 'wake', ARGV[1])").Run(t.Context(), c, nil, message).Int()
	require.NoError(t, err)
	return n
}

// requireMessage requires that the next message is want.
func requireMessage(t *testing.T, sub *redis.PubSub, want string) {
	t.Helper()
	m, err := sub.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, m.Payload)
}

// requireSilence requires that no message comes for a while and that the connection is alive.
func requireSilence(t *testing.T, sub *redis.PubSub) {
	t.Helper()
	require.NoError(t, sub.Ping(t.Context(), "alive"))
	got, err := sub.ReceiveTimeout(t.Context(), time.Minute)
	require.NoError(t, err)
	require.IsType(t, &redis.Pong{}, got)
}

func TestScriptsPublish(t *testing.T) {
	for name, protocol := range map[string]func(*redis.Options){"RESP2": resp2, "RESP3": func(*redis.Options) {}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, m *inmemory.Master) {
				c := m.Client(once)
				require.Zero(t, wake(t, c, "nobody"))
				one, two := subscribed(t, m.Client(once, protocol)), subscribed(t, m.Path().Client(once, protocol))
				for range 2 { // first the script, then its hash
					require.Equal(t, 2, wake(t, c, "both"))
					requireMessage(t, one, "both")
					requireMessage(t, two, "both")
				}
				require.Contains(t, names(m.Commands()), "SUBSCRIBE")
				require.NotContains(t, names(m.Commands()), "PUBLISH")
			})
		})
	}
}

// A hook sees the commands that a script calls, and can answer them in the server's place.
func TestHooksSeeMessagesOfScripts(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client(once)
		m.Miniredis().Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
			if command == "PUBLISH" {
				p.WriteError("NOPERM no channel for you")
			}
			return command == "PUBLISH"
		})
		require.ErrorContains(t, c.Eval(t.Context(), "return redis.call('PUBLISH', 'wake', '')", nil).Err(), "NOPERM no channel for you")
	})
}

func TestMessagesSkipClientsThatAreGone(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, m *inmemory.Master, p *inmemory.Path, sub *redis.PubSub){
		"closed": func(t *testing.T, _ *inmemory.Master, _ *inmemory.Path, sub *redis.PubSub) {
			require.NoError(t, sub.Close())
		},
		"cut": func(_ *testing.T, _ *inmemory.Master, p *inmemory.Path, _ *redis.PubSub) { p.Break() },
		"unsubscribed": func(_ *testing.T, _ *inmemory.Master, p *inmemory.Path, _ *redis.PubSub) {
			p.BreakSubscriptions()
		},
		"reply lost": func(t *testing.T, m *inmemory.Master, _ *inmemory.Path, sub *redis.PubSub) {
			m.LoseReplies(1)
			require.NoError(t, sub.Ping(t.Context()))
		},
		"request lost": func(t *testing.T, m *inmemory.Master, _ *inmemory.Path, sub *redis.PubSub) {
			m.LoseRequests(1)
			require.NoError(t, sub.Ping(t.Context()))
		},
		"restarted": func(t *testing.T, m *inmemory.Master, _ *inmemory.Path, _ *redis.PubSub) {
			require.NoError(t, m.Restart())
		},
		"failed over": func(t *testing.T, m *inmemory.Master, _ *inmemory.Path, _ *redis.PubSub) {
			require.NoError(t, m.FailOver())
		},
		"a message cut": func(t *testing.T, m *inmemory.Master, p *inmemory.Path, _ *redis.PubSub) {
			losing(p, faultlink.ToClient)
			require.Equal(t, 1, wake(t, m.Client(), "lost"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *inmemory.Master) {
				p := m.Path()
				sub := subscribed(t, p.Client(once))
				require.Equal(t, 1, wake(t, m.Client(), "here"))
				synctest.Wait()
				leave(t, m, p, sub)
				synctest.Wait() // without any passage of time
				require.Zero(t, wake(t, m.Client(), "gone"))
			})
		})
	}
	t.Run("tcp", func(t *testing.T) {
		m := start(t, 1).Master(0)
		require.NoError(t, subscribed(t, m.Client(once)).Close())
		require.Eventually(t, func() bool { return wake(t, m.Client(), "gone") == 0 }, 10*time.Second, time.Millisecond)
	})
}

// The server does not know yet that the client is gone.
func TestMessagesReachClientsThatAreCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		sub := subscribed(t, p.Client(once))
		p.Hold(true, true)
		require.NoError(t, sub.Close())
		time.Sleep(time.Hour)
		require.Equal(t, 1, wake(t, m.Client(), "lost"))
		p.Heal()
		synctest.Wait()
		require.Zero(t, wake(t, m.Client(), "gone"))
	})
}

func TestMessagesTravelAPath(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		sub := subscribed(t, p.Client(once))
		c := m.Client()
		shaped(p, time.Hour, 11*time.Millisecond)
		begin := time.Now()
		require.Equal(t, 1, wake(t, c, "late"))
		require.Zero(t, time.Since(begin))
		requireMessage(t, sub, "late")
		require.Equal(t, 11*time.Millisecond, time.Since(begin))

		p.Shape(nil)
		p.Hold(false, true)
		require.Equal(t, 1, wake(t, c, "held"))
		time.AfterFunc(time.Minute, p.Heal)
		begin = time.Now()
		requireMessage(t, sub, "held")
		require.Equal(t, time.Minute, time.Since(begin))

		require.Equal(t, 1, wake(t, c, "under way"))
		p.Break()
		_, err := sub.Receive(t.Context())
		require.ErrorIs(t, err, io.EOF)
	})
}

// Each message counts as one, even if it comes with others or with replies.
func TestPathIsAskedOncePerPublishedMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		sub := subscribed(t, p.Client(once))
		var mu sync.Mutex
		asked, lengths := 0, []int(nil)
		p.Shape(func(d faultlink.Direction) (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			if d == faultlink.ToClient {
				asked++
			}
			return 0, false
		})
		p.Tear(func(d faultlink.Direction, bytes int) int {
			mu.Lock()
			defer mu.Unlock()
			if d == faultlink.ToClient {
				lengths = append(lengths, bytes)
			}
			return bytes
		})
		c := m.Client()
		for range 5 {
			require.Equal(t, 1, wake(t, c, "x"))
		}
		synctest.Wait()
		require.NoError(t, sub.Ping(t.Context()))
		synctest.Wait()
		long := len(">3\r\n$7\r\nmessage\r\n$4\r\nwake\r\n$1\r\nx\r\n")
		require.Equal(t, 6, asked)
		require.Equal(t, []int{long, long, long, long, long}, lengths[:5])

		p.Shape(nil)
		p.Tear(func(d faultlink.Direction, bytes int) int { return bytes - 1 })
		wake(t, c, "torn")
		for range 5 {
			requireMessage(t, sub, "x")
		}
		got, err := sub.Receive(t.Context())
		require.NoError(t, err)
		require.IsType(t, &redis.Pong{}, got)
		_, err = sub.Receive(t.Context())
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		synctest.Wait() // the master, too, has seen the connection end
		require.Zero(t, wake(t, c, "gone"))
	})
}

func TestAStalledMasterPublishesWhenResumed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		sub, c := subscribed(t, m.Client(once)), connected(t, m.Path(), func(o *redis.Options) { o.ReadTimeout = time.Hour })
		m.Stall()
		begin := time.Now()
		time.AfterFunc(time.Minute, m.Resume)
		published := background(func() error { return c.Publish(t.Context(), "wake", "stalled").Err() })
		requireMessage(t, sub, "stalled")
		require.Equal(t, time.Minute, time.Since(begin))
		_, err := published()
		require.NoError(t, err)
	})
}

// A bubble can end while subscriptions exist, in more than one bubble.
func TestVirtualChannelsTwice(t *testing.T) {
	for range 2 {
		inBubble(t, func(t *testing.T, m *inmemory.Master) {
			sub := subscribed(t, m.Client(resp2))
			messages := sub.Channel()
			time.Sleep(time.Minute) // long enough for health checks
			m.BreakSubscriptions()
			require.Eventually(t, func() bool { return wake(t, m.Client(), "again") == 1 }, time.Minute, time.Second)
			require.Equal(t, "again", (<-messages).Payload)
			require.NoError(t, sub.Close())
		})
	}
}
