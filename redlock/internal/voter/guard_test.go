package voter_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// onlyOn deletes the key of a lock on all nodes except those in keep.
func onlyOn(b *virtual.Bed, l *redlock.Lock, keep ...int) {
	b.Settle()
	for i := range b.Masters.Len() {
		if !slices.Contains(keep, i) {
			b.Redis(i).Del(l.Key())
		}
	}
}

// infos counts the INFO commands that a node got since the last call.
func infos(b *virtual.Bed, i int) (n int) {
	for _, c := range b.Masters.Master(i).Commands() {
		if c[0] == "INFO" {
			n++
		}
	}
	b.Masters.Master(i).ResetCommands()
	return n
}

// The hole in Redlock: A holds by nodes 0, 1 and 2, and 2 forgets. Without the guard B gets in by
// 2, 3 and 4. With it, B does not get in before A's validity is over.
func TestGuardExcludesAMasterThatForgot(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{})
		a := b.Take(b.Redlock)
		onlyOn(b, a, 0, 1, 2)
		require.NoError(b, b.Masters.Master(2).RestartEmpty())
		second := b.Take(other)
		assert.True(b, time.Now().Before(a.Until()), "two holders")
		_, _ = a.Release(ctx), second.Release(ctx)
	})
	virtual.Run(t, 5, virtual.Guarded, func(b *virtual.Bed) {
		other := b.NewRedlock(virtual.Guarded)
		b.Release(b.Take(other)) // it meets the servers
		a := b.Take(b.Redlock)
		onlyOn(b, a, 0, 1, 2)
		require.NoError(b, b.Masters.Master(2).RestartEmpty())
		start := time.Now()
		_, err := other.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld) // this also finds a broken connection
		_, err = other.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, b.Masters.Master(2).Addr()+": quarantined for 11.1s: restarted 0s ago")
		second, err := other.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		assert.False(b, time.Now().Before(a.Until()))
		assert.Less(b, time.Since(start), ttl+time.Second, "by the keys of the others expiring, and no later")
		_ = a.Release(ctx)
		b.Release(second)
	})
}

// A quarantined node gets all commands, so that it is a full node again when the quarantine ends,
// and is released with the others. The end of the quarantine wakes waiters.
func TestGuardEndsAQuarantine(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Warm()
		start := time.Now()
		for i := range 2 {
			require.NoError(b, b.Masters.Master(i).RestartEmpty())
		}
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorContains(b, err, "connection lost: closed by the server")
		time.Sleep(2800 * time.Millisecond)
		_, err = b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorContains(b, err, "quarantined for 8.3s: restarted 2.8s ago")
		assert.Empty(b, b.Has(key), "its grant is given back")
		l, err := b.Redlock.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		assert.Equal(b, virtual.Quarantine, time.Since(start))
		b.Settle()
		assert.Equal(b, []int{0, 1, 2}, b.Has(key))
		b.Release(l)
		assert.Empty(b, b.Has(key))
	})
}

// A quarantined node's vote does not extend a lock either. But if it reports that it has lost the
// lock, that counts.
func TestGuardExcludesAQuarantinedNodeFromExtend(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		l := b.Take(b.Redlock)
		b.Settle()
		for i := range 2 {
			require.NoError(b, b.Masters.Master(i).Restart()) // with its memory
		}
		until := l.Until()
		err := l.Extend(ctx, ttl)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, until, l.Until())
		b.Redis(0).Del(key)
		b.Redis(1).Del(key)
		assert.ErrorIs(b, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		_ = l.Release(ctx)
	})
}

// composing runs f when the client has composed a batch and not yet sent it.
type composing struct{ f func() }

func (c *composing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *composing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.once()
		return next(ctx, cmd)
	}
}

func (c *composing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.once()
		return next(ctx, cmds)
	}
}

func (c *composing) once() {
	if f := c.f; f != nil {
		c.f = nil
		f()
	}
}

// A verified node is killed and comes back empty while a batch for it is composed.
func TestGuardFindsARestartWhileABatchIsComposed(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		hook := &composing{}
		nodes := b.Masters.Clients()
		nodes[2].AddHook(hook)
		r, err := redlock.New(nodes, virtual.Guarded)
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		b.Release(b.Take(r)) // verified
		b.Steal(key, ttl, 0)
		hook.f = func() { require.NoError(b, b.Masters.Master(2).RestartEmpty()) }
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.Error(b, err, "by 1 and an unverified 2")
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "quarantined for 11.1s")
		// The same happens on a new connection, so that INFO is in the batch.
		hook.f = func() { require.NoError(b, b.Masters.Master(2).RestartEmpty()) }
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.Error(b, err)
		b.Settle()
	})
}

// An identity is trusted for a second on a live connection. Asking again takes no extra round trip.
func TestGuardAsksOnceASecond(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		infos(b, 0)
		for range 500 { // 10 s
			var l *redlock.Lock
			require.Equal(b, 10*time.Millisecond, virtual.Took(func() { l = b.Take(b.Redlock) }))
			require.Equal(b, 10*time.Millisecond, virtual.Took(func() { require.NoError(b, l.Release(ctx)) }))
		}
		assert.InDelta(b, 20, infos(b, 0), 2, "two sections a second")
	})
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Delay(time.Millisecond, time.Millisecond) // all lanes send before the first answer comes
		for range 20 {
			b.Release(b.Take(b.Redlock))
			time.Sleep(500 * time.Millisecond)
		}
		assert.Equal(b, 1, infos(b, 0), "without the guard once while the lane has its connection")
		for range 3 {
			b.Release(b.Take(b.Redlock))
			time.Sleep(2 * time.Second) // the connection is given back by then
		}
		assert.Equal(b, 2, infos(b, 0), "and for each that it takes")
		b.Masters.Kill(0)
		require.NoError(b, b.Masters.Restart(0))
		for range 3 {
			b.Release(b.Take(b.Redlock))
			time.Sleep(500 * time.Millisecond)
		}
		assert.Equal(b, 1, infos(b, 0))
	})
}

// For a user that may not run INFO, the error names the missing right, and no vote counts. Without
// the guard INFO is not needed.
func TestGuardWithoutTheRightToInfo(t *testing.T) {
	forbid := func(b *virtual.Bed) {
		for _, m := range b.Masters.All() {
			m.Miniredis().Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if cmd != "INFO" {
					return false
				}
				c.WriteError("NOPERM this user has no permissions to run the 'info' command")
				return true
			})
		}
	}
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		forbid(b)
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		b.Settle() // the error was certain after two answers
		assert.ErrorContains(b, err, "does not permit INFO, which Config.RestartGuard needs (ACL: +info): NOPERM")
		assert.Empty(b, b.Has(key))
		assert.Contains(b, fmt.Sprint(b.Redlock.Nodes()[0].Servers[0].Err), "+info")
	})
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		forbid(b)
		b.Release(b.Take(b.Redlock))
	})
	// Any other error is reported as it is. A malformed identity record counts as none.
	virtual.Run(t, 1, virtual.Guarded, func(b *virtual.Bed) {
		_, err := b.Redis(0).Lpush("redlock:server", "x")
		require.NoError(b, err)
		b.Release(b.Take(b.Redlock))
		b.Redis(0).SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(time.Second)
		_, err = b.Redlock.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "LOADING")
		assert.NotContains(b, fmt.Sprint(err), "+info")
		b.Redis(0).SetError("")
	})
}

func TestGuardRefusesALongerTTL(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		want := "redlock: ttl 10.000000001s is above Config.RestartGuard, 10s"
		_, err := b.Redlock.TryAcquire(ctx, key, virtual.GuardFor+1)
		assert.EqualError(b, err, want)
		_, err = b.Redlock.Acquire(ctx, key, virtual.GuardFor+1)
		assert.EqualError(b, err, want)
		assert.EqualError(b, b.Redlock.Do(ctx, key, virtual.GuardFor+1, func(context.Context) error { return nil }), want)
		l := b.Take(b.Redlock)
		assert.EqualError(b, l.Extend(ctx, virtual.GuardFor+1), want)
		require.NoError(b, l.Extend(ctx, virtual.GuardFor))
		b.Release(l)
	})
}

func TestGuardStatusOfNodes(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		for _, n := range b.Redlock.Nodes() {
			assert.Empty(b, n.Servers, "nobody was asked")
		}
		b.Warm()
		require.NoError(b, b.Masters.Master(1).RestartEmpty())
		now := time.Now()
		for range 2 { // the first operation finds a connection broken
			b.Cycle(b.Redlock)
		}
		for i, n := range b.Redlock.Nodes() {
			m := b.Masters.Master(i)
			assert.Equal(b, m.Addr(), n.Addr)
			require.Len(b, n.Servers, 1)
			s := n.Servers[0]
			assert.Len(b, s.RunID, 40)
			assert.Equal(b, "master", s.Role)
			if i == 1 {
				assert.Equal(b, now, s.Started)
				assert.Equal(b, now.Add(virtual.Quarantine), s.Quarantine)
				assert.ErrorContains(b, s.Err, "quarantined for 11.1s: restarted 0s ago")
			} else {
				assert.Equal(b, inmemory.InitialUptime, now.Sub(s.Started))
				assert.True(b, s.Quarantine.Before(now))
				assert.NoError(b, s.Err)
			}
		}
	})
	assert.Nil(t, (*redlock.Redlock)(nil).Nodes())
	assert.Nil(t, (&redlock.Redlock{}).Nodes())
}
