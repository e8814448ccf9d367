package inmemory_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// inBubble runs f in virtual time. The bubble waits for all goroutines, so one that outlived
// Close would fail the test.
func inBubble(t *testing.T, f func(t *testing.T, m *inmemory.Master)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, inmemory.StartVirtual(t, 1).Master(0))
	})
}

func TestVirtualAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := inmemory.StartVirtual(t, 300)
		require.Nil(t, ms.URLs())
		require.Empty(t, ms.Master(0).URL())
		require.Equal(t, "10.0.0.1:6379", ms.Master(0).Addr())
		require.Equal(t, "10.0.1.44:6379", ms.Master(299).Addr())
	})
}

func TestVirtualExpiryFollowsTheBubble(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Hour).Err())
		time.Sleep(time.Hour - time.Millisecond)
		require.Equal(t, time.Millisecond, c.PTTL(t.Context(), "key").Val())
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
	})
}

func TestVirtualExpiryGoesOnWhileDead(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "short", "value", time.Second).Err())
		require.NoError(t, c.Set(t.Context(), "long", "value", time.Minute).Err())
		m.Kill()
		time.Sleep(10 * time.Second)
		require.NoError(t, m.Restart())
		require.Equal(t, []string{"long"}, m.Miniredis().Keys())
		require.Equal(t, 50*time.Second, m.Miniredis().TTL("long"))
	})
}

func TestVirtualKillRefusesAndRestartAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client(once)
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		m.Kill()
		require.Error(t, c.Get(t.Context(), "key").Err(), "the pooled connection was cut")
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), syscall.ECONNREFUSED)
		require.ErrorContains(t, c.Get(t.Context(), "key").Err(), "dial tcp 10.0.0.1:6379")

		require.NoError(t, m.Restart())
		require.Equal(t, "value", c.Get(t.Context(), "key").Val())
		require.NoError(t, m.RestartEmpty())
		require.ErrorIs(t, m.Client().Get(t.Context(), "key").Err(), redis.Nil)
	})
}

// A default client survives a restart: the pipe's error makes it retry, as a socket's does.
func TestVirtualDefaultClientReconnects(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		require.NoError(t, m.Restart())
		require.Equal(t, "value", c.Get(t.Context(), "key").Val())
	})
}

func TestVirtualStall(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		old, fresh := m.Client(), m.Client()
		require.NoError(t, old.Ping(t.Context()).Err())
		m.Stall()
		m.ResetCommands()

		begin := time.Now()
		var wg sync.WaitGroup
		for _, c := range []*redis.Client{old, fresh} {
			wg.Go(func() {
				if err := c.Incr(t.Context(), "n").Err(); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took != time.Second {
					t.Errorf("answered after %v", took)
				}
			})
		}
		time.Sleep(time.Second)
		require.Empty(t, m.Commands())
		require.Empty(t, m.Miniredis().Keys())
		m.Resume()
		wg.Wait()
		require.Equal(t, "2", old.Get(t.Context(), "n").Val())
	})
}

// The client has given up, but its SET still arrives, and its key gets its full ttl then.
func TestVirtualStalledSetOutlivesItsClient(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client(once, func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond })
		require.NoError(t, c.Ping(t.Context()).Err())
		m.Stall()
		require.Error(t, c.Set(t.Context(), "key", "late", time.Second).Err())
		require.NoError(t, c.Close())
		time.Sleep(time.Minute)
		require.Empty(t, m.Miniredis().Keys())
		m.Resume()
		synctest.Wait()
		require.Equal(t, time.Second, m.Miniredis().TTL("key"))
	})
}

func TestVirtualDelayIsExact(t *testing.T) {
	const request, reply = 7 * time.Millisecond, 11 * time.Millisecond
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Ping(t.Context()).Err())
		m.Delay(request, reply)
		begin := time.Now()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		require.Equal(t, request+reply, time.Since(begin))
		require.Equal(t, time.Second-reply, m.Miniredis().TTL("key"), "set when the request arrived")

		m.Delay(0, 0)
		begin = time.Now()
		require.NoError(t, c.Ping(t.Context()).Err())
		require.Zero(t, time.Since(begin))
	})
}

// A second request is sent before the first has arrived. Both are delayed at the same time,
// and arrive in order.
func TestVirtualDelayKeepsThroughputAndOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		sub := c.Subscribe(t.Context(), "a")
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)

		begin := time.Now()
		m.Delay(time.Second, 0)
		require.NoError(t, sub.Subscribe(t.Context(), "b"))
		time.Sleep(100 * time.Millisecond)
		m.Delay(0, 0) // does not overtake
		require.NoError(t, sub.Subscribe(t.Context(), "c"))
		for _, want := range []string{"b", "c"} {
			got, err := sub.Receive(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got.(*redis.Subscription).Channel)
			require.Equal(t, time.Second, time.Since(begin))
		}

		begin = time.Now()
		m.Delay(time.Second, 0)
		for i, want := range []string{"d", "e"} {
			require.NoError(t, sub.Subscribe(t.Context(), want))
			if i == 0 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		for i := range 2 {
			_, err := sub.Receive(t.Context())
			require.NoError(t, err)
			require.Equal(t, time.Second+time.Duration(i)*100*time.Millisecond, time.Since(begin))
		}
	})
}

// Case 4 of what broke other lock libraries: the release overtakes the SET.
func TestVirtualDelayedSetOutlivesItsConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client(once, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
		require.NoError(t, c.Ping(t.Context()).Err())
		m.Delay(700*time.Millisecond, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		require.Error(t, c.Set(ctx, "key", "late", time.Hour).Err())
		m.Delay(0, 0)
		require.Zero(t, c.Del(t.Context(), "key").Val(), "the key is not there yet")
		time.Sleep(499 * time.Millisecond)
		require.Empty(t, m.Miniredis().Keys())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

func TestVirtualLosses(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client(once)
		m.LoseReplies(1)
		require.Error(t, c.Incr(t.Context(), "n").Err())
		m.LoseRequests(1)
		require.Error(t, c.Incr(t.Context(), "n").Err())
		require.Equal(t, "1", c.Get(t.Context(), "n").Val())
	})
}

func TestVirtualKillInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client(once)
		require.NoError(t, c.Ping(t.Context()).Err())
		m.Delay(time.Second, time.Second)
		set := make(chan error, 1)
		begin := time.Now()
		go func() { set <- c.Set(t.Context(), "key", "lost", 0).Err() }()
		time.Sleep(500 * time.Millisecond)
		m.Kill()
		require.Error(t, <-set)
		require.Equal(t, 500*time.Millisecond, time.Since(begin), "cut at once")
		time.Sleep(time.Minute)
		require.Empty(t, m.Miniredis().Keys())
	})
}

func TestVirtualMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		sub := m.Client().Subscribe(t.Context(), "channel")
		defer sub.Close()
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		m.Delay(0, time.Second)
		begin := time.Now()
		// No subscriber reads yet, but the publisher does not wait for that.
		for range 1000 {
			m.Miniredis().Publish("channel", "hello")
		}
		for range 1000 {
			_, err = sub.ReceiveMessage(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, time.Second, time.Since(begin))
	})
}

// Many callers use one default client, in more than one bubble. If go-redis's pool ran out,
// the second bubble would crash.
func TestVirtualManyCallersTwice(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			var wg sync.WaitGroup
			m := inmemory.StartVirtual(t, 1).Master(0)
			m.Delay(time.Millisecond, 0) // keeps connections in use
			c := m.Client()
			for range 60 {
				wg.Go(func() {
					if err := c.Incr(t.Context(), "n").Err(); err != nil {
						t.Error(err)
					}
				})
				wg.Go(func() {
					_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Incr(t.Context(), "n").Err() })
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}
