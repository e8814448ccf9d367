package voter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// everyAcquisition has a configuration for each command that can grant a key to a value that has it
// already, and one for SET.
var everyAcquisition = map[string]redlock.Config{
	"plain":   {},
	"fencing": {Fencing: true},
	"fair":    {Fair: true},
	"both":    {Fencing: true, Fair: true},
}

// eachWay has configurations with and without the options that change an acquisition.
var eachWay = map[string]redlock.Config{
	"plain":             {},
	"guard":             {RestartGuard: ttl},
	"fencing":           {Fencing: true},
	"guard and fencing": {RestartGuard: ttl, Fencing: true},
}

// eachMoving calls f for each configuration with n masters, and with a Redlock on three addresses
// that lead to the first of them.
func eachMoving(t *testing.T, n int, configs map[string]redlock.Config, f func(b *virtual.Bed, r *redlock.Redlock, addrs []*virtual.Movable)) {
	t.Helper()
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, n, redlock.Config{}, func(b *virtual.Bed) {
				r, addrs := b.Moving(cfg, 3)
				f(b, r, addrs)
			})
		})
	}
}

// While the lanes rest, one node's address starts to lead to another node's server, and the third
// node dies. One server of three is no majority.
func TestDuplicateAppearsWhileTheLaneRestsBeforeAcquire(t *testing.T) {
	eachMoving(t, 3, everyAcquisition, func(b *virtual.Bed, r *redlock.Redlock, addrs []*virtual.Movable) {
		b.Cycle(r)
		time.Sleep(2500 * time.Millisecond)
		addrs[0].Moves(b.Masters.Master(1), 0)
		b.Masters.Kill(2)
		for range 2 {
			_, err := r.TryAcquire(ctx, key, ttl)
			require.ErrorIs(b, err, redlock.ErrDuplicateNode)
			b.Settle()
			assert.Empty(b, b.Has(key))
		}
	})
}

// A server that is too busy to identify itself, and grants right after, may be another node's
// server.
func TestDuplicateIsSuspectedOfAServerTooBusyForInfo(t *testing.T) {
	eachMoving(t, 3, everyAcquisition, func(b *virtual.Bed, r *redlock.Redlock, addrs []*virtual.Movable) {
		b.Cycle(r)
		time.Sleep(2500 * time.Millisecond)
		var asked atomic.Int32
		b.Masters.Master(1).Miniredis().Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
			if command != "INFO" {
				return false
			}
			asked.Add(1)
			p.WriteError("BUSY Redis is busy running a script.")
			return true
		})
		addrs[0].Moves(b.Masters.Master(1), 0)
		b.Masters.Kill(2)
		for range 2 {
			_, err := r.TryAcquire(ctx, key, ttl)
			require.ErrorIs(b, err, redlock.ErrNoQuorum)
			b.Settle()
			assert.Empty(b, b.Has(key))
		}
		assert.GreaterOrEqual(b, asked.Load(), int32(4), "by two nodes, with each attempt")
		b.Masters.Master(1).Miniredis().Server().SetPreHook(nil)
		_, err := r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrDuplicateNode)
	})
}

// The same happens with a client that has one connection, which the lane gives back at once.
func TestDuplicateIsFoundOverTheOnlyConnection(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var nodes []redis.UniversalClient
		for i := range 3 {
			a := virtual.NewMovable(b.Masters.Master(i))
			nodes = append(nodes, b.Masters.Master(i).Client(func(o *redis.Options) {
				o.Dialer, o.PoolSize, o.ConnMaxIdleTime = a.Dial, 1, time.Millisecond
			}))
			if i == 0 {
				defer func() { a.Moves(b.Masters.Master(0), 0) }()
				time.AfterFunc(50*time.Millisecond, func() { a.Moves(b.Masters.Master(1), 0) })
			}
		}
		r, err := redlock.New(nodes, redlock.Config{Fencing: true})
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		b.Cycle(r)
		time.Sleep(100 * time.Millisecond)
		b.Masters.Kill(2)
		_, err = r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrDuplicateNode)
	})
}

// The same holds for an extension, which each of the two nodes would grant.
func TestDuplicateAppearsWhileTheLaneRestsBeforeExtend(t *testing.T) {
	eachMoving(t, 3, everyAcquisition, func(b *virtual.Bed, r *redlock.Redlock, addrs []*virtual.Movable) {
		l, err := r.TryAcquire(ctx, key, time.Minute)
		require.NoError(b, err)
		time.Sleep(2500 * time.Millisecond)
		addrs[0].Moves(b.Masters.Master(1), 0)
		b.Masters.Kill(2)
		require.ErrorIs(b, l.Extend(ctx, time.Minute), redlock.ErrNoQuorum)
		_ = l.Release(ctx)
	})
}

// In one round a node grants. Then its address starts to lead to another server, which its lane
// meets. Another node's address starts to lead to the server that has granted. That server grants
// the same value again, and still has one vote.
func TestDuplicateCountsOnceInARound(t *testing.T) {
	eachMoving(t, 4, everyAcquisition, func(b *virtual.Bed, r *redlock.Redlock, addrs []*virtual.Movable) {
		b.Cycle(r)
		time.Sleep(2500 * time.Millisecond)
		b.Masters.Kill(2)
		addrs[0].Moves(b.Masters.Master(1), 5*time.Millisecond)
		tried := make(chan error, 1)
		go func() { // node 1 grants at once; node 0 has to shake hands
			_, err := r.TryAcquire(ctx, key, ttl)
			tried <- err
		}()
		time.Sleep(time.Millisecond)
		require.Equal(b, []int{1}, b.Has(key))
		addrs[1].Moves(b.Masters.Master(3), 0)
		for range 2 { // the first operation finds the connection broken
			go func() { _, _ = r.TryAcquire(ctx, "another", ttl) }()
			time.Sleep(time.Millisecond)
		}
		require.NotEmpty(b, b.Masters.Master(3).Commands(), "node 1 is another server now")
		assert.Error(b, <-tried)
		time.Sleep(time.Second)
	})
}

// A server is gone for one node and appears behind another one. It may vote there.
func TestDuplicateIsForgottenWhenItsOtherNodeIsDead(t *testing.T) {
	eachMoving(t, 4, eachWay, func(b *virtual.Bed, r *redlock.Redlock, addrs []*virtual.Movable) {
		b.Cycle(r)
		// Server 0 is gone for good, and server 1 answers at node 0's address too.
		addrs[0].Moves(b.Masters.Master(1), 0)
		b.Masters.Kill(0)
		time.Sleep(time.Millisecond)
		// An attempt can be decided before node 0 has identified its server.
		for range 10 {
			l, err := r.TryAcquire(ctx, key, ttl)
			b.Settle()
			if errors.Is(err, redlock.ErrDuplicateNode) {
				break
			}
			if err == nil {
				b.Release(l)
				b.Settle()
			}
		}
		_, err := r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrDuplicateNode)
		// Then nothing answers at node 1's address any more.
		addrs[1].Moves(b.Masters.Master(3), 0)
		b.Masters.Kill(3)
		time.Sleep(2 * virtual.GuardFor)
		if _, err := r.TryAcquire(ctx, key, ttl); err != nil { // the client finds out
			time.Sleep(5 * time.Second) // go-redis dials five times
			_, err2 := r.TryAcquire(ctx, key, ttl)
			require.NoError(b, err2, "%v", err)
		}
		b.Settle()
		assert.Equal(b, []int{1, 2}, b.Has(key))
	})
}

// One server that is listed twice has one vote, and the first operation reports it.
func TestDuplicateOfAServerListedTwice(t *testing.T) {
	for _, cfg := range []redlock.Config{{}, virtual.Guarded, {Fencing: true}} {
		virtual.Run(t, 2, redlock.Config{}, func(b *virtual.Bed) {
			var log bytes.Buffer
			cfg := cfg
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			twice := b.Masters.Master(0)
			nodes := []redis.UniversalClient{twice.Client(), b.Masters.Master(1).Client(), twice.Client()}
			r, err := redlock.New(nodes, cfg)
			require.NoError(b, err)
			for _, acquire := range []func(context.Context, string, time.Duration) (*redlock.Lock, error){r.TryAcquire, r.Acquire} {
				_, err = acquire(ctx, key, ttl)
				require.ErrorIs(b, err, redlock.ErrDuplicateNode)
				assert.EqualError(b, err, `redlock: acquire "orders": one node is listed twice: `+
					twice.Addr()+" and "+twice.Addr()+" (2) are the same server")
			}
			b.Settle()
			assert.Empty(b, b.Has(key))
			assert.True(b, slices.ContainsFunc(r.Nodes(), func(n redlock.NodeStatus) bool {
				return errors.Is(n.Servers[0].Err, redlock.ErrDuplicateNode)
			}))
			require.NoError(b, r.Close())
			assert.Contains(b, log.String(), "one server is listed as two nodes")
		})
	}
}

// The first operation waits for a slow duplicate, but not for a hung node, nor for one that refuses
// connections.
func TestDuplicateIsAwaitedByTheFirstOperation(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		b.Stall(0)
		b.Masters.Kill(1)
		assert.Equal(b, 90*time.Millisecond, virtual.Took(func() { b.Release(b.Take(b.Redlock)) }), "20 to shake hands, 10 each, and the wait")
		assert.Equal(b, 20*time.Millisecond, virtual.Took(func() { b.Release(b.Take(b.Redlock)) }), "once")
	})
}

// That wait is no longer than a lock can afford.
func TestDuplicateIsAwaitedNoLongerThanALockCanAfford(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Delay(time.Millisecond, time.Millisecond)
		b.Stall(0)
		l, err := b.Redlock.TryAcquire(ctx, key, 60*time.Millisecond)
		require.NoError(b, err)
		assert.Greater(b, time.Until(l.Until()), 20*time.Millisecond)
		b.Release(l)
	})
}
