package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestHealthyWhileAMajorityCanVote(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{KeyPrefix: "app:"}, func(b *virtual.Bed) {
		b.Warm()
		assert.NoError(b, b.Redlock.Healthy(ctx))
		b.Settle()
		for i := range 5 {
			assert.Equal(b, []string{"SET"}, b.Asked(i), "one round")
			assert.Empty(b, b.Redis(i).Keys(), "which changes nothing")
		}
		assert.Equal(b, int64(1), b.Redlock.Stats().Acquired, "no acquisition but that of Warm")
		b.Stall(0, 1)
		b.Delay(time.Millisecond, time.Millisecond)
		assert.Equal(b, 2*time.Millisecond, virtual.Took(func() { assert.NoError(b, b.Redlock.Healthy(ctx)) }),
			"hung masters of a minority cost nothing")
		b.Resume(0, 1)
	})
}

func TestHealthyNamesEachNodesCause(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Masters.Kill(0)
		b.Stall(1)
		b.Masters.Master(2).RefuseCommands("OOM command not allowed when used memory > 'maxmemory'.")
		var err error
		assert.Equal(b, virtual.NodeTimeout, virtual.Took(func() { err = b.Redlock.Healthy(ctx) }))
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		var failed *redlock.QuorumError
		require.ErrorAs(b, err, &failed)
		assert.Equal(b, "health", failed.Op)
		require.Len(b, failed.Nodes, 3)
		assert.ErrorContains(b, failed.Nodes[0], b.Masters.Master(0).Addr()+": dial tcp")
		assert.ErrorContains(b, failed.Nodes[1], b.Masters.Master(1).Addr()+": no answer within 200ms")
		assert.ErrorContains(b, failed.Nodes[2], b.Masters.Master(2).Addr()+": OOM")
		b.Resume(1)
	})
}

// The votes of a server in quarantine do not count, and a replica takes no write.
func TestHealthyHeedsTheGuard(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		time.Sleep(time.Hour)
		require.NoError(b, b.Redlock.Healthy(ctx))
		require.NoError(b, b.Masters.Master(0).RestartEmpty())
		b.Masters.Master(1).Demote()
		time.Sleep(2 * time.Second)
		_ = b.Redlock.Healthy(ctx) // notices that connections broke
		err := b.Redlock.Healthy(ctx)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorContains(b, err, "quarantined for 10.1s: restarted 2s ago")
		assert.ErrorContains(b, err, "READONLY")
		time.Sleep(virtual.Quarantine)
		assert.NoError(b, b.Redlock.Healthy(ctx), "the quarantine is over")
	})
}

func TestHealthyReportsADuplicate(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		clients := b.Masters.Clients()
		again := redis.NewClient(clients[0].(*redis.Client).Options())
		defer func() { require.NoError(b, again.Close()) }()
		r, err := redlock.New([]redis.UniversalClient{clients[0], clients[1], again}, redlock.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		assert.ErrorIs(b, r.Healthy(ctx), redlock.ErrDuplicateNode)
	})
}

func TestHealthyEndsWithItsContextAndAfterClose(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Stall(0, 1)
		why := errors.New("why")
		c, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		var err error
		assert.Equal(b, time.Millisecond, virtual.Took(func() { err = b.Redlock.Healthy(c) }))
		assert.ErrorIs(b, err, why)
		assert.NotErrorIs(b, err, redlock.ErrNoQuorum)
		b.Resume(0, 1)
		var no context.Context
		assert.EqualError(b, b.Redlock.Healthy(no), "redlock: ctx is nil")
		require.NoError(b, b.Redlock.Close())
		assert.ErrorIs(b, b.Redlock.Healthy(ctx), redlock.ErrClosed)
		var none *redlock.Redlock
		assert.ErrorContains(b, none.Healthy(ctx), "not made by New or Open")
		assert.ErrorContains(b, new(redlock.Redlock).Healthy(ctx), "not made by New or Open")
		assert.Zero(b, none.Stats())
		assert.Zero(b, new(redlock.Redlock).Stats())
	})
}

// A key that somebody has made by hand where no key is to be does not make a master unhealthy.
func TestHealthyOverwritesNothingButItsKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		require.NoError(b, b.Redis(0).Set("redlock:health", "by hand"))
		assert.NoError(b, b.Redlock.Healthy(ctx))
		_, err := b.Redlock.TryAcquire(ctx, "redlock:health", ttl)
		assert.ErrorContains(b, err, "is reserved")
	})
}

func TestStatsCountLocksAndVotes(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		b.Settle()
		s := b.Redlock.Stats()
		assert.Equal(b, redlock.Stats{Held: 1, Acquired: 1}, withoutNodes(s))
		require.Len(b, s.Nodes, 3)
		for i, n := range s.Nodes {
			assert.Equal(b, redlock.NodeStats{Addr: b.Masters.Master(i).Addr(), Granted: 1}, n)
		}

		// A caller that finds the key taken waits, also behind another of the same Redlock.
		got := make(chan *redlock.Lock, 2)
		for range 2 {
			go func() {
				l, err := b.Redlock.Acquire(ctx, key, ttl)
				assert.NoError(b, err)
				got <- l
			}()
		}
		b.Settle()
		s = b.Redlock.Stats()
		assert.EqualValues(b, 2, s.Waiting)
		assert.Zero(b, s.WaitCount)
		for _, n := range s.Nodes {
			assert.GreaterOrEqual(b, n.Granted, int64(2), "the queue entry too")
			assert.Positive(b, n.Refused)
			assert.Zero(b, n.Failed)
		}
		time.Sleep(time.Second)
		require.NoError(b, l.Release(ctx))
		l = <-got
		require.NoError(b, l.Release(ctx))
		l = <-got
		assert.Equal(b, redlock.Stats{Held: 1, Acquired: 3, Released: 2, WaitCount: 2, WaitDuration: 2 * time.Second},
			withoutNodes(b.Redlock.Stats()))
		require.NoError(b, l.Release(ctx))
		b.Delay(time.Millisecond, time.Millisecond)
		before := b.Redlock.Stats().Nodes[0]
		b.Cycle(b.Redlock)
		after := b.Redlock.Stats().Nodes[0]
		assert.GreaterOrEqual(b, after.Latency-before.Latency, 4*time.Millisecond, "two votes")
	})
}
