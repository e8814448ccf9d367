package inmemory_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestJumpForwardShortensAndExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "short", "value", time.Second).Err())
		require.NoError(t, c.Set(t.Context(), "exact", "value", 10*time.Second).Err())
		require.NoError(t, c.Set(t.Context(), "long", "value", time.Minute).Err())
		m.JumpClock(10 * time.Second)
		require.Equal(t, []string{"long"}, c.Keys(t.Context(), "*").Val())
		require.Equal(t, 50*time.Second, c.PTTL(t.Context(), "long").Val())
	})
}

func TestJumpBackLengthens(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		time.Sleep(400 * time.Millisecond)
		m.JumpClock(-time.Minute)
		require.Equal(t, 600*time.Millisecond+time.Minute, c.PTTL(t.Context(), "key").Val())
		time.Sleep(600*time.Millisecond + time.Minute - time.Nanosecond)
		require.Equal(t, "value", c.Get(t.Context(), "key").Val())
		time.Sleep(time.Nanosecond)
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
	})
}

// No command has read the key since it expired, so the server has not noticed yet.
func TestJumpBackDoesNotBringBackWhatHasExpired(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		time.Sleep(time.Second)
		m.JumpClock(-time.Hour)
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
	})
}

func TestJumpsLeaveKeysWithoutTTLAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
		for _, d := range []time.Duration{time.Hour, -time.Hour} {
			m.JumpClock(d)
			require.Equal(t, "value", c.Get(t.Context(), "key").Val())
			require.Equal(t, time.Duration(-1), c.PTTL(t.Context(), "key").Val(), "-1 is no ttl")
		}
	})
}

func TestJumpsReachEveryDatabase(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		for _, db := range []int{0, 1, 15} {
			c := m.Client(func(o *redis.Options) { o.DB = db })
			require.NoError(t, c.Set(t.Context(), "key", "value", time.Minute).Err())
			m.JumpClock(-time.Minute)
			require.Equal(t, 2*time.Minute, c.PTTL(t.Context(), "key").Val())
			m.JumpClock(90 * time.Second)
			require.Equal(t, 30*time.Second, c.PTTL(t.Context(), "key").Val())
			m.JumpClock(30 * time.Second)
			require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
		}
	})
}

// A client sets its key while the clock jumps. Whether the set comes before or after the jump,
// the key gets one of two ttls, and never the ttl of the key that was there before.
func TestJumpBackAndASetDoNotMix(t *testing.T) {
	m := start(t, 1).Master(0)
	c := m.Path().Client()
	for range 200 {
		require.NoError(t, c.Set(t.Context(), "key", "before", 10*time.Hour).Err())
		var wg sync.WaitGroup
		wg.Go(func() { m.JumpClock(-100 * time.Hour) })
		require.NoError(t, c.Set(t.Context(), "key", "after", time.Hour).Err())
		wg.Wait()
		left := m.Miniredis().TTL("key")
		if left > 50*time.Hour {
			left -= 100 * time.Hour
		}
		require.LessOrEqual(t, left, time.Hour)
	}
}

func TestASetAfterAJumpGetsItsFullTTL(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		m.JumpClock(time.Hour)
		m.JumpClock(-2 * time.Hour)
		c := m.Client()
		require.NoError(t, c.Set(t.Context(), "key", "value", time.Second).Err())
		require.Equal(t, time.Second, c.PTTL(t.Context(), "key").Val())
		time.Sleep(time.Second)
		require.ErrorIs(t, c.Get(t.Context(), "key").Err(), redis.Nil)
	})
}

func TestJumpsStepTheTime(t *testing.T) {
	everywhere(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Client().Conn()
		defer c.Close()
		told := func() (asked, called time.Duration) {
			parts, err := c.Eval(t.Context(), "return redis.call('TIME')", nil).StringSlice()
			require.NoError(t, err)
			seconds, err := strconv.ParseInt(parts[0], 10, 64)
			require.NoError(t, err)
			micros, err := strconv.ParseInt(parts[1], 10, 64)
			require.NoError(t, err)
			now, err := c.Time(t.Context()).Result()
			require.NoError(t, err)
			return time.Until(now), time.Until(time.Unix(seconds, 1000*micros))
		}
		stepped := time.Duration(0)
		for _, d := range []time.Duration{0, time.Hour, -3 * time.Hour, 2 * time.Hour} {
			m.JumpClock(d)
			stepped += d
			asked, called := told()
			require.InDelta(t, stepped, asked, float64(time.Minute))
			require.InDelta(t, stepped, called, float64(time.Minute))
		}
		m.JumpClock(time.Hour)
		queued, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error { p.Time(t.Context()); return nil })
		require.NoError(t, err, "a transaction takes no harm")
		require.WithinDuration(t, time.Now(), queued[0].(*redis.TimeCmd).Val(), time.Minute, "and is not concerned")
		asked, _ := told()
		require.InDelta(t, time.Hour, asked, float64(time.Minute))
	})
}
