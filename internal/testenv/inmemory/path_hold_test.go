package inmemory_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestHeldRequestIsExecutedWhenHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
		p.Hold(true, false)
		set := background(func() error { return c.Set(t.Context(), "key", "value", time.Minute).Err() })
		time.Sleep(10 * time.Minute)
		require.Empty(t, m.Miniredis().Keys())
		p.Heal()
		took, err := set()
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, took)
		require.Equal(t, time.Minute, m.Miniredis().TTL("key"), "its ttl begins with its execution")
	})
}

// The client gives up, but its request is in the network and still arrives.
func TestHeldRequestOutlivesItsClient(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, inTime)
		p.Hold(true, false)
		require.Error(t, c.Set(t.Context(), "key", "late", time.Minute).Err())
		require.NoError(t, c.Close())
		time.Sleep(time.Hour)
		require.Empty(t, m.Miniredis().Keys())
		p.Heal()
		synctest.Wait()
		require.Equal(t, time.Minute, m.Miniredis().TTL("key"))
	})
}

func TestHeldReplyArrivesWhenHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
		p.Hold(false, true)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		synctest.Wait()
		require.Equal(t, []string{"key"}, m.Miniredis().Keys(), "executed at once")
		time.Sleep(time.Minute)
		p.Heal()
		took, err := set()
		require.NoError(t, err)
		require.Equal(t, time.Minute, took)
	})
}

// Each call of Hold sets both directions, whatever was held before.
func TestHoldReplacesAnEarlierHold(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, inTime)
		p.Hold(true, true)
		p.Hold(true, true)
		p.Hold(false, true)
		require.Error(t, c.Incr(t.Context(), "n").Err(), "replies are still held")
		require.Equal(t, []string{"n"}, m.Miniredis().Keys(), "and requests are not")
		p.Hold(true, false)
		require.Error(t, c.Ping(t.Context()).Err())
		p.Heal()
		p.Heal()
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

func TestDiallingAHeldPathTakesUntilItsContextEnds(t *testing.T) {
	for name, hold := range map[string]func(*inmemory.Path){
		"requests": func(p *inmemory.Path) { p.Hold(true, false) },
		"replies":  func(p *inmemory.Path) { p.Hold(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, m *inmemory.Master) {
				p := m.Path()
				c := p.Client(once, func(o *redis.Options) { o.DialTimeout = 3 * time.Second })
				hold(p)
				begin := time.Now()
				err := c.Ping(t.Context()).Err()
				require.ErrorContains(t, err, "dial tcp 10.0.0.1:6379")
				require.Equal(t, 3*time.Second, time.Since(begin))
				require.Empty(t, m.Commands())
			})
		})
	}
}

func TestDiallingAHeldPathProceedsWhenHealed(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := p.Client(once)
		p.Hold(true, true)
		ping := background(func() error { return c.Ping(t.Context()).Err() })
		time.Sleep(2 * time.Second)
		p.Heal()
		took, err := ping()
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, took)
	})
}

// A dial under way is held too, and waits.
func TestHoldCatchesADialUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		shaped(p, time.Second, 0)
		dialled := 0
		c := p.Client(once, func(o *redis.Options) {
			o.OnConnect = func(context.Context, *redis.Conn) error { dialled++; return nil }
		})
		ping := background(func() error { return c.Ping(t.Context()).Err() })
		time.Sleep(500 * time.Millisecond)
		p.Hold(true, false)
		time.Sleep(2 * time.Second)
		require.Zero(t, dialled)
		p.Shape(nil)
		p.Heal()
		took, err := ping()
		require.NoError(t, err)
		require.Equal(t, 2500*time.Millisecond, took)
	})
}

func TestHeldPathHidesThatItsMasterDied(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		c := connected(t, p, func(o *redis.Options) { o.ReadTimeout = time.Hour })
		p.Hold(false, true)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(time.Second)
		m.Kill()
		time.Sleep(time.Minute)
		p.Heal()
		took, err := set()
		require.ErrorIs(t, err, io.EOF, "the reply died with its master")
		require.Equal(t, time.Minute+time.Second, took)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

// The bubble ends, so no goroutine is left: neither of a held or delayed request or reply, nor
// of a subscriber, nor of a dial that has just begun.
func TestCloseLeavesNothingOfAHeldPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := inmemory.StartVirtual(t, 1)
		m := ms.Master(0)
		patient := func(o *redis.Options) { o.ReadTimeout = time.Hour }
		requests, replies, slow, fresh := m.Path(), m.Path(), m.Path(), m.Path()
		sub := connected(t, replies).Subscribe(t.Context(), "channel")
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		clients := []*redis.Client{
			connected(t, requests, patient), connected(t, replies, patient), connected(t, slow, patient),
			fresh.Client(), // dials for as long as a default client does
		}
		requests.Hold(true, false)
		replies.Hold(false, true)
		fresh.Hold(true, true)
		shaped(slow, time.Hour, 0)
		errs := make([]error, len(clients)+1)
		for i, c := range clients {
			go func() { errs[i] = c.Incr(t.Context(), "n").Err() }()
		}
		go func() { _, errs[len(clients)] = sub.ReceiveMessage(t.Context()) }()
		synctest.Wait()
		m.Miniredis().Publish("channel", "held")
		require.NoError(t, ms.Close())
		synctest.Wait()
		for i, err := range errs {
			require.Error(t, err, "%d had ended when Close returned", i)
		}
	})
}
