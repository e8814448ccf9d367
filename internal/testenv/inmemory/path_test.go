package inmemory_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestPathCutsOffItsClientAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		cut, other, direct := m.Path(), m.Path(), m.Client(inTime)
		c, d := connected(t, cut, inTime), connected(t, other, inTime)
		reached := func() {
			require.NoError(t, d.Set(t.Context(), "key", "value", 0).Err())
			require.NoError(t, direct.Set(t.Context(), "key", "value", 0).Err())
			require.NoError(t, other.Client(inTime).Ping(t.Context()).Err())
		}
		cut.Hold(true, true)
		reached()
		require.Error(t, c.Ping(t.Context()).Err())
		cut.Heal()
		require.NoError(t, c.Ping(t.Context()).Err())

		cut.Refuse(true)
		cut.Break()
		reached()
		require.Error(t, c.Ping(t.Context()).Err(), "its connection was cut")
		require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)

		cut.Refuse(false)
		losing(cut, faultlink.ToServer)
		reached()
		require.Error(t, c.Ping(t.Context()).Err())
	})
}

func TestKillCutsADelayedReplyAtOnce(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, 0, time.Second)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(400 * time.Millisecond)
		m.Kill()
		took, err := set()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 400*time.Millisecond, took)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

func TestRefuseRefusesNewConnectionsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		p := m.Path()
		old := connected(t, p)
		p.Refuse(true)
		require.ErrorIs(t, p.Client(once).Ping(t.Context()).Err(), syscall.ECONNREFUSED)
		require.NoError(t, old.Ping(t.Context()).Err())
		p.Refuse(false)
		require.NoError(t, p.Client(once).Ping(t.Context()).Err())
	})
}

func TestBreakLosesTheRequestUnderWay(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, time.Second, 0)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(400 * time.Millisecond)
		p.Break()
		took, err := set()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 400*time.Millisecond, took, "cut at once")
		time.Sleep(time.Minute)
		require.Empty(t, m.Miniredis().Keys())
		require.NoError(t, c.Ping(t.Context()).Err(), "a new connection is as before")
	})
}

func TestBreakLosesTheReplyUnderWay(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		shaped(p, 0, time.Second)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(400 * time.Millisecond)
		p.Break()
		_, err := set()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, []string{"key"}, m.Miniredis().Keys())
	})
}

func TestBreakLosesHeldRequestsAndReplies(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		p.Hold(true, true)
		set := background(func() error { return c.Set(t.Context(), "key", "value", 0).Err() })
		time.Sleep(time.Second)
		p.Break()
		_, err := set()
		require.ErrorIs(t, err, io.EOF)
		p.Heal()
		synctest.Wait()
		require.Empty(t, m.Miniredis().Keys())
	})
}

// A client notices that an idle connection was cut when it next uses it.
func TestBreakIsNoticedAtTheNextUse(t *testing.T) {
	onPath(t, func(t *testing.T, m *inmemory.Master, p *inmemory.Path, c *redis.Client) {
		p.Break()
		require.ErrorIs(t, c.Ping(t.Context()).Err(), io.EOF)
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

func TestDiallingADeadMasterIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, m *inmemory.Master) {
		c := m.Path().Client(once)
		m.Kill()
		require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)
		require.NoError(t, m.Restart())
		require.NoError(t, c.Ping(t.Context()).Err())
	})
}

// The same without a bubble: the master listens on a socket, which the path does not use.
func TestPathInRealTime(t *testing.T) {
	ms := start(t, 2)
	m := ms.Master(0)
	p := m.Path()
	c := connected(t, p)
	require.NoError(t, c.Set(t.Context(), "key", "value", 0).Err())
	require.Equal(t, "value", ms.Clients()[0].Get(t.Context(), "key").Val())
	require.Zero(t, ms.Clients()[1].Exists(t.Context(), "key").Val())

	executed := make(chan struct{}, 1)
	m.Observe(func(x inmemory.Exchange) {
		if x.Command[0] == "INCR" {
			executed <- struct{}{}
		}
	})
	p.Hold(false, true)
	held := background(func() error { return c.Incr(t.Context(), "n").Err() })
	<-executed
	p.Heal()
	_, err := held()
	require.NoError(t, err)

	p.Refuse(true)
	p.Break()
	require.ErrorIs(t, c.Ping(t.Context()).Err(), io.EOF)
	require.ErrorIs(t, c.Ping(t.Context()).Err(), syscall.ECONNREFUSED)
	require.NoError(t, m.Client().Ping(t.Context()).Err())
	p.Refuse(false)
	p.Hold(true, true) // the path is held when it is closed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.True(t, errors.Is(c.Ping(ctx).Err(), context.Canceled))
}
