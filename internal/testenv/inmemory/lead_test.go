package inmemory_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// New connections lead to the other master, and open ones stay. Leading back works in the same
// way.
func TestPathLeadsToAnotherMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := inmemory.StartVirtual(t, 2)
		own, other := ms.Master(0), ms.Master(1)
		require.NoError(t, own.Miniredis().Set("who", "own"))
		require.NoError(t, other.Miniredis().Set("who", "other"))
		p := own.Path()
		c := p.Client()
		who := func() string { return c.Get(t.Context(), "who").Val() }
		require.Equal(t, "own", who())
		p.Lead(other)
		require.Equal(t, "own", who(), "an open connection moved")
		again := func() string {
			p.Break()
			_ = c.Ping(t.Context()).Err() // finds the connection cut
			return who()
		}
		require.Equal(t, "other", again())
		p.Lead(own)
		require.Equal(t, "own", again())
	})
}

// A server that was promoted in another's place has the other's history and a new run id, and
// keeps its keys.
func TestPromotedFromAnotherMaster(t *testing.T) {
	ms := inmemory.Start(t, 2)
	old, next := ms.Master(0), ms.Master(1)
	require.NoError(t, next.Miniredis().Set("key", "value"))
	before, spare := ask(t, old.Client()), ask(t, next.Client())
	next.PromotedFrom(old)
	after := ask(t, next.Client())
	require.NotEqual(t, spare.runID, after.runID)
	require.NotEqual(t, before.runID, after.runID)
	require.NotEqual(t, before.replID, after.replID)
	require.Equal(t, self{after.runID, after.replID, before.replID, "1", "master", after.uptime}, after)
	require.Equal(t, "value", next.Client().Get(t.Context(), "key").Val())
}

// It can be seen that a pooled connection was cut before it is used.
func TestEndedIsSeenInAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := inmemory.StartVirtual(t, 1).Master(0).Path()
		var conn net.Conn
		c := p.Client(func(opts *redis.Options) {
			dial := opts.Dialer
			opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				made, err := dial(ctx, network, addr)
				conn = made
				return made, err
			}
		})
		require.NoError(t, c.Ping(t.Context()).Err())
		ended := func() bool { return conn.(interface{ Ended() bool }).Ended() }
		require.False(t, ended())
		p.Hold(false, true)
		require.False(t, ended())
		p.Heal()
		p.Break()
		require.True(t, ended())
	})
}
