package inmemory_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestLoseMessages(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		one, two, c := subscribed(t, m.Client(once)), subscribed(t, m.Client(once, resp2)), m.Client(once)
		m.LoseMessages(3)
		require.Equal(t, 2, wake(t, c, "lost"), "it counts them")
		requireSilence(t, one)
		requireSilence(t, two)
		require.NoError(t, two.Close())
		require.Eventually(t, func() bool { return wake(t, c, "one lost") == 1 }, 10*time.Second, time.Millisecond)
		wake(t, c, "end")
		for got := ""; got != "end"; {
			m, err := one.ReceiveMessage(t.Context())
			require.NoError(t, err)
			got = m.Payload
		}
		m.LoseMessages(-1)
		for range 10 {
			require.Equal(t, 1, wake(t, c, "lost"))
		}
		requireSilence(t, one)
		require.Equal(t, 1, wake(t, c, strings.Repeat("x", 5000)), "too long to be lost")
		requireMessage(t, one, strings.Repeat("x", 5000))
		m.LoseMessages(0)
		require.Equal(t, 1, wake(t, c, "arrives"))
		requireMessage(t, one, "arrives")
	})
}

// Confirmations of a subscription and replies are not messages.
func TestLoseMessagesLosesNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		m.LoseMessages(-1)
		m.DelayMessages(time.Hour)
		begin := time.Now()
		requireSilence(t, subscribed(t, m.Client(once)))
		c := m.Client(once, resp2)
		require.NoError(t, c.RPush(t.Context(), "list", "message", "wake", "x").Err())
		require.Len(t, c.LRange(t.Context(), "list", 0, -1).Val(), 3)
		require.Zero(t, time.Since(begin))
	})
}

func TestDelayMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		sub, c := subscribed(t, m.Client(once, resp2)), m.Client()
		require.Equal(t, 1, wake(t, c, "at once"))
		requireMessage(t, sub, "at once")
		m.Delay(0, time.Second)
		m.DelayMessages(time.Minute)
		begin := time.Now()
		require.Equal(t, 1, wake(t, c, "late"))
		require.Equal(t, time.Second, time.Since(begin), "the reply")
		m.DelayMessages(0)
		require.Equal(t, 1, wake(t, c, "behind it"))
		requireMessage(t, sub, "late")
		require.Equal(t, time.Minute+time.Second, time.Since(begin))
		requireMessage(t, sub, "behind it")
		require.Equal(t, time.Minute+time.Second, time.Since(begin))
	})
}

func TestBreakSubscriptionsLeavesTheOthers(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		one, two, c := subscribed(t, m.Client(once)), subscribed(t, m.Path().Client(once, resp2)), open(t, m)
		require.Equal(t, ":2\r\n", c.do("PUBLISH", "wake", "x"))
		requireMessage(t, one, "x")
		requireMessage(t, two, "x")
		m.BreakSubscriptions()
		require.Equal(t, ":0\r\n", c.do("PUBLISH", "wake", "x"), "at once, and this connection lives")
		for _, sub := range []*redis.PubSub{one, two} {
			_, err := sub.ReceiveTimeout(t.Context(), time.Minute)
			require.Error(t, err)
		}

		// A connection without subscriptions is not cut.
		c.do("SUBSCRIBE", "wake")
		c.do("UNSUBSCRIBE", "wake")
		m.BreakSubscriptions()
		require.Equal(t, "+PONG\r\n", c.do("PING"))
	})
}

func TestPathBreakSubscriptionsLeavesOtherPaths(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		cut, left, c := subscribed(t, p.Client(once)), subscribed(t, m.Path().Client(once)), connected(t, p)
		p.BreakSubscriptions()
		synctest.Wait()
		m.ResetCommands()
		require.Equal(t, 1, wake(t, c, "one"))
		requireMessage(t, left, "one")
		require.NotContains(t, names(m.Commands()), "HELLO", "its own connection lives on")
		_, err := cut.Receive(t.Context())
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestRefuseSubscriptions(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		const noperm = "NOPERM this user has no permissions to run the 'subscribe' command"
		old := subscribed(t, m.Client(once))
		m.RefuseSubscriptions(noperm)
		for _, protocol := range []int{2, 3} {
			c := m.Client(once, func(o *redis.Options) { o.Protocol = protocol })
			for _, sub := range []*redis.PubSub{c.Subscribe(t.Context(), "wake"), c.PSubscribe(t.Context(), "w*")} {
				_, err := sub.Receive(t.Context())
				require.EqualError(t, err, noperm)
				require.NoError(t, sub.Close())
			}
			require.NoError(t, c.Ping(t.Context()).Err())
		}
		require.Equal(t, 1, wake(t, m.Client(), "old"))
		requireMessage(t, old, "old")
		require.NoError(t, old.Subscribe(t.Context(), "more"))
		_, err := old.Receive(t.Context())
		require.EqualError(t, err, noperm)

		m.RefuseSubscriptions("")
		subscribed(t, m.Client(once))
	})
}
