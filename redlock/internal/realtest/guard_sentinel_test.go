package realtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// managed makes a Redlock on a Sentinel's master, which is node 0, and two other masters.
func (f *fleet) managed(s *redisserver.Sentinel, cfg redlock.Config) *redlock.Redlock {
	f.Helper()
	return f.redlockOf(append([]redis.UniversalClient{s.Client()}, f.clients()...), cfg)
}

// noneNew waits until neither master nor replica counts as new.
func (f *fleet) noneNew(s *redisserver.Sentinel) {
	f.Helper()
	for _, find := range []func() (*redisserver.Server, error){s.Master, s.Replica} {
		server, err := find()
		require.NoError(f, err)
		f.notNew(server, realGuard)
	}
}

// A promoted replica may not have received a lock. Its votes do not count, and the votes of the
// master before it did.
func TestRealGuardQuarantinesAPromotedReplica(t *testing.T) {
	f := startFleet(t, 2)
	s := redisserver.StartSentinel(t)
	r := f.managed(s, realGuarded)
	f.counted(r, key)
	old, err := s.Master()
	require.NoError(t, err)
	was := r.Nodes()[0].Servers[0].RunID
	f.noneNew(s)

	// It looks as if another client held the key by the Sentinel's master too, and the replica had
	// not received it.
	require.NoError(t, f.admin[0].Set(f.ctx, key, "somebody else's", time.Hour).Err())
	var before time.Time
	require.NoError(t, s.AwaitFailover(func() error {
		old.Kill()
		before = time.Now()
		return nil
	}))

	unguarded := f.beside()
	plain := unguarded.managed(s, redlock.Config{})
	f.eventually("without the guard another gets it", func() bool {
		l, err := plain.TryAcquire(f.ctx, key, ttl)
		return err == nil && f.release(l) == nil
	})
	f.eventually("its vote does not count", func() bool {
		node := f.ask(r, key).Nodes[0]
		require.NotEqual(t, quorum.Granted, node.Vote)
		return strings.Contains(fmt.Sprint(node.Err), "another server took over")
	})
	now := r.Nodes()[0].Servers[0]
	assert.NotEqual(t, was, now.RunID)
	assert.Equal(t, "master", now.Role)
	assert.ErrorContains(t, now.Err, "another server took over")
	_, err = r.TryAcquire(f.ctx, key, realGuard)
	require.ErrorIs(t, err, redlock.ErrHeld)
	assert.Regexp(t, `sentinel-managed master: quarantined for [0-9.]+m?s: another server took over [0-9.]+m?s ago`, fmt.Sprint(err))
	f.letIn(r, key, 0, before.Add(realGuard))
}

// A master that its Sentinel deposes and promotes again is the same process, and has been up for
// long. A client finds out, whether or not it saw the master in between.
func TestRealGuardQuarantinesAFormerMaster(t *testing.T) {
	f := startFleet(t, 2)
	s := redisserver.StartSentinel(t)
	busy, idle := f.beside(), f.beside()
	rBusy, rIdle := busy.managed(s, realGuarded), idle.managed(s, realGuarded)
	busy.counted(rBusy, key)
	idle.counted(rIdle, key)
	first, err := s.Master()
	require.NoError(t, err)
	was := rIdle.Nodes()[0].Servers[0].RunID
	f.noneNew(s)

	const why = "another server took over"
	require.NoError(t, s.Failover())
	busy.keptOut(rBusy, key, 0, why)
	between := rBusy.Nodes()[0].Servers[0]
	assert.NotEqual(t, was, between.RunID)
	// Until it learns that it was deposed it remains a master, and forgets nothing.
	f.eventually("the old one is a replica in sync", func() bool {
		info, err := first.Client().Info(f.ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	f.eventually("the old one can be promoted, and is", func() bool { return s.Failover() == nil })
	before := time.Now()
	again, err := s.Master()
	require.NoError(t, err)
	require.Same(t, first, again)

	node := idle.ask(rIdle, key).Nodes[0]
	assert.NotEqual(t, quorum.Granted, node.Vote, "not even the first time")
	idle.keptOut(rIdle, key, 0, why)
	assert.Equal(t, was, rIdle.Nodes()[0].Servers[0].RunID)
	busy.eventually("the other one is met", func() bool {
		require.NotEqual(t, quorum.Granted, busy.ask(rBusy, key).Nodes[0].Vote)
		return rBusy.Nodes()[0].Servers[0].RunID == was
	})
	busy.keptOut(rBusy, key, 0, why)
	idle.letIn(rIdle, key, 0, before)
	assert.False(t, rIdle.Nodes()[0].Servers[0].Quarantine.Before(before.Add(realGuard)))
	busy.letIn(rBusy, key, 0, before)
	assert.False(t, rBusy.Nodes()[0].Servers[0].Quarantine.Before(before.Add(realGuard)))
}
