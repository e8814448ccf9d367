package redlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

const guardFor = 10 * time.Second

var guarded = redlock.Config{RestartGuard: guardFor}

// quarantine is how long votes do not count of a server that starts now: the guard,
// a second for the granularity of its uptime, and the drift of the guard.
const quarantine = guardFor + time.Second + guardFor/100 + 2*time.Millisecond

// held takes a lock and gives its key to others than the nodes in keep.
func (b *bed) onlyOn(l *redlock.Lock, keep ...int) {
	b.settle()
	for i := range b.masters.Len() {
		if !slices.Contains(keep, i) {
			b.redis(i).Del(l.Key())
		}
	}
}

// infos counts the questions that a node was asked since the last call.
func (b *bed) infos(i int) (n int) {
	for _, c := range b.masters.Master(i).Commands() {
		if c[0] == "INFO" {
			n++
		}
	}
	b.masters.Master(i).ResetCommands()
	return n
}

// The hole in Redlock: A holds by nodes 0, 1 and 2, and 2 forgets. Without the guard B
// gets in by 2, 3 and 4; with it, not before A's validity is over.
func TestAMasterThatForgotDoesNotVote(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		other := b.client(redlock.Config{})
		a := b.take(b.lock)
		b.onlyOn(a, 0, 1, 2)
		require.NoError(b, b.masters.Master(2).RestartEmpty())
		second := b.take(other)
		assert.True(b, time.Now().Before(a.Until()), "two holders")
		_, _ = a.Release(ctx), second.Release(ctx)
	})
	virtually(t, 5, guarded, func(b *bed) {
		other := b.client(guarded)
		b.release(b.take(other)) // it knows the servers
		a := b.take(b.lock)
		b.onlyOn(a, 0, 1, 2)
		require.NoError(b, b.masters.Master(2).RestartEmpty())
		start := time.Now()
		_, err := other.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld) // and a connection is found to be broken
		_, err = other.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, b.masters.Master(2).Addr()+": quarantined for 11.1s: restarted 0s ago")
		second, err := other.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		assert.False(b, time.Now().Before(a.Until()))
		assert.Less(b, time.Since(start), ttl+time.Second, "by the keys of the others expiring, and no later")
		_ = a.Release(ctx)
		b.release(second)
	})
}

// What is quarantined is asked all the same, so that it is a full node again when its
// time is over, and is released with the others. The end of it wakes who waits.
func TestAQuarantineEnds(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		b.warm()
		start := time.Now()
		for i := range 2 {
			require.NoError(b, b.masters.Master(i).RestartEmpty())
		}
		_, err := b.lock.TryAcquire(ctx, key, ttl)
		require.ErrorContains(b, err, "connection lost: closed by the server")
		time.Sleep(2800 * time.Millisecond)
		_, err = b.lock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorContains(b, err, "quarantined for 8.3s: restarted 2.8s ago")
		assert.Empty(b, b.has(key), "its grant is given back")
		l, err := b.lock.Acquire(ctx, key, ttl)
		require.NoError(b, err)
		assert.Equal(b, quarantine, time.Since(start))
		b.settle()
		assert.Equal(b, []int{0, 1, 2}, b.has(key))
		b.release(l)
		assert.Empty(b, b.has(key))
	})
}

// A quarantined node's word does not extend a lock either, but that it has lost it is
// true.
func TestAQuarantinedNodeDoesNotExtend(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		l := b.take(b.lock)
		b.settle()
		for i := range 2 {
			require.NoError(b, b.masters.Master(i).Restart()) // with its memory
		}
		until := l.Until()
		err := l.Extend(ctx, ttl)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, until, l.Until())
		b.redis(0).Del(key)
		b.redis(1).Del(key)
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
func TestAServerRestartsWhileABatchIsComposed(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		hook := &composing{}
		nodes := b.masters.Clients()
		nodes[2].AddHook(hook)
		r, err := redlock.New(nodes, guarded)
		require.NoError(b, err)
		defer func() { require.NoError(b, r.Close()) }()
		b.release(b.take(r)) // verified
		b.steal(key, ttl, 0)
		hook.f = func() { require.NoError(b, b.masters.Master(2).RestartEmpty()) }
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.Error(b, err, "by 1 and an unverified 2")
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "quarantined for 11.1s")
		// The same with a connection that is new, so that INFO is in the batch.
		hook.f = func() { require.NoError(b, b.masters.Master(2).RestartEmpty()) }
		_, err = r.TryAcquire(ctx, key, ttl)
		assert.Error(b, err)
		b.settle()
	})
}

// Another server takes over behind the address; it has been up for long.
func TestAPromotedServerIsQuarantined(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		b.warm()
		b.steal(key, time.Hour, 0)
		require.NoError(b, b.masters.Master(2).FailOver())
		_, err := b.lock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld) // 1 granted; 2 says nothing yet
		time.Sleep(time.Second)
		_, err = b.lock.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, b.masters.Master(2).Addr()+": quarantined for 9.1s: another server took over 1s ago")
		time.Sleep(guardFor)
		b.release(b.take(b.lock))
	})
}

// A master is demoted and promoted again; its connections live on, and so does its run
// id. Whether or not it was asked meanwhile, it is found out.
func TestAFormerMasterThatIsBackIsQuarantined(t *testing.T) {
	for _, asked := range []bool{true, false} {
		virtually(t, 3, guarded, func(b *bed) {
			b.warm()
			b.steal(key, time.Hour, 0)
			b.masters.Master(2).Demote()
			if asked {
				_, err := b.lock.TryAcquire(ctx, key, ttl)
				assert.ErrorContains(b, err, "READONLY")
				_, err = b.lock.TryAcquire(ctx, key, ttl)
				require.Error(b, err)
				assert.ErrorContains(b, b.lock.Nodes()[2].Servers[0].Err, "is a replica")
			} else {
				time.Sleep(time.Second)
			}
			b.masters.Master(2).Promote()
			_, err := b.lock.TryAcquire(ctx, key, ttl)
			assert.ErrorContains(b, err, "another server took over", "asked: %v", asked)
			time.Sleep(quarantine)
			b.release(b.take(b.lock))
		})
	}
}

// promote has a replica take over that has all but the latest keys: it has the marker.
func (b *bed) promote(i int) {
	b.Helper()
	mark, err := b.redis(i).Get("redlock:server")
	require.NoError(b, err)
	require.NoError(b, b.masters.Master(i).FailOver())
	require.NoError(b, b.redis(i).Set("redlock:server", mark))
}

// A client that was not there when a replica was promoted finds in the node's marker
// that another server was, or since when this one is.
func TestAFreshClientKnowsOfAPromotion(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		b.warm()
		b.warm() // writes the markers
		time.Sleep(time.Second)
		b.steal(key, time.Hour, 0)
		b.promote(2)
		first := b.client(guarded)
		_, err := first.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, "quarantined for 10.1s: another server took over 0s ago")
		time.Sleep(4 * time.Second)
		second := b.client(guarded)
		_, err = second.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "quarantined for 6.1s: another server took over 4s ago", "the first has written since when")
		time.Sleep(guardFor)
		b.redis(0).Del(key)
		third := b.client(guarded)
		b.release(b.take(third))
		assert.NoError(b, third.Nodes()[2].Servers[0].Err)
		// Who was there all the time believes that too, although it hears of it late.
		l := b.take(b.lock)
		b.settle()
		b.release(l)
		b.release(b.take(b.lock))
		assert.NoError(b, b.lock.Nodes()[2].Servers[0].Err)
	})
}

// A server that was never a replica and has no identity record is not kept out, or no first
// deployment would work. One that was restarted with its memory has a record, of the
// process before: it costs one guard if no client saw the restart, and once.
func TestAcquireCountsAServerWithoutAnIdentityRecord(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		b.release(b.take(b.lock))
		for i, n := range b.lock.Nodes() {
			assert.NoError(b, n.Servers[0].Err)
			assert.True(b, b.redis(i).Exists("redlock:server"))
			require.NoError(b, b.masters.Master(i).Restart())
		}
		time.Sleep(quarantine + time.Second)
		_, err := b.client(guarded).TryAcquire(ctx, key, ttl)
		require.ErrorContains(b, err, "quarantined for 10.1s: another server took over 0s ago")
		time.Sleep(quarantine)
		for range 2 {
			b.release(b.take(b.client(guarded)))
		}
	})
	virtually(t, 1, redlock.Config{KeyPrefix: "p:", RestartGuard: guardFor}, func(b *bed) {
		b.warm()
		b.warm()
		assert.Equal(b, []string{"p:redlock:server"}, b.redis(0).Keys())
	})
	virtually(t, 1, redlock.Config{}, func(b *bed) {
		b.warm()
		b.warm()
		assert.Empty(b, b.redis(0).Keys(), "without the guard there is none")
	})
}

// One batch is enough to write a marker, also over the only connection of a client.
func TestTheMarkerIsWrittenAtOnce(t *testing.T) {
	virtually(t, 1, redlock.Config{}, func(b *bed) {
		client := b.masters.Master(0).Client(func(o *redis.Options) { o.PoolSize = 1 })
		r, err := redlock.New([]redis.UniversalClient{client}, guarded)
		require.NoError(b, err)
		l := b.take(r)
		b.settle()
		assert.True(b, b.redis(0).Exists("redlock:server"))
		b.release(l)
		require.NoError(b, r.Close())
	})
}

// Who knows of a promotion tells others, though a client that did not has been there and
// left a marker without a time.
func TestAMarkerIsGivenATime(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		b.warm()
		b.masters.Master(2).Miniredis().Del("redlock:server")
		require.NoError(b, b.masters.Master(2).FailOver())
		b.release(b.take(b.client(guarded))) // does not know
		for range 2 {                        // knows
			l := b.take(b.lock)
			b.settle()
			b.release(l)
		}
		fresh := b.client(guarded)
		l := b.take(fresh)
		b.settle()
		assert.ErrorContains(b, fresh.Nodes()[2].Servers[0].Err, "another server took over")
		b.release(l)
	})
}

// An identity is believed for a second on a live connection, and asking again takes no
// round trip.
func TestTheGuardAsksOnceASecond(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		b.warm()
		b.delay(5*time.Millisecond, 5*time.Millisecond)
		b.infos(0)
		for range 500 { // 10 s
			var l *redlock.Lock
			require.Equal(b, 10*time.Millisecond, took(func() { l = b.take(b.lock) }))
			require.Equal(b, 10*time.Millisecond, took(func() { require.NoError(b, l.Release(ctx)) }))
		}
		assert.InDelta(b, 20, b.infos(0), 2, "two sections a second")
	})
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		for range 20 {
			b.release(b.take(b.lock))
			time.Sleep(500 * time.Millisecond)
		}
		assert.Equal(b, 1, b.infos(0), "without the guard once while the lane has its connection")
		for range 3 {
			b.release(b.take(b.lock))
			time.Sleep(2 * time.Second) // the connection is given back
		}
		assert.Equal(b, 2, b.infos(0), "and for each that it takes")
		b.masters.Kill(0)
		require.NoError(b, b.masters.Restart(0))
		for range 3 {
			b.release(b.take(b.lock))
			time.Sleep(500 * time.Millisecond)
		}
		assert.Equal(b, 1, b.infos(0))
	})
}

// Whoever may not run INFO is told which right is missing, and no vote counts. Without
// the guard it does without.
func TestInfoThatIsNotPermitted(t *testing.T) {
	forbid := func(b *bed) {
		for _, m := range b.masters.All() {
			m.Miniredis().Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if cmd != "INFO" {
					return false
				}
				c.WriteError("NOPERM this user has no permissions to run the 'info' command")
				return true
			})
		}
	}
	virtually(t, 3, guarded, func(b *bed) {
		forbid(b)
		_, err := b.lock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.ErrorContains(b, err, "does not permit INFO, which Config.RestartGuard needs (ACL: +info): NOPERM")
		assert.Empty(b, b.has(key))
		assert.Contains(b, text(b.lock.Nodes()[0].Servers[0].Err), "+info")
	})
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		forbid(b)
		b.release(b.take(b.lock))
	})
	// Another error is told as it is, and what is no marker is none.
	virtually(t, 1, guarded, func(b *bed) {
		_, err := b.redis(0).Lpush("redlock:server", "x")
		require.NoError(b, err)
		b.release(b.take(b.lock))
		b.redis(0).SetError("LOADING Redis is loading the dataset in memory")
		time.Sleep(time.Second)
		_, err = b.lock.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "LOADING")
		assert.NotContains(b, text(err), "+info")
		b.redis(0).SetError("")
	})
}

func TestATTLAboveTheGuardIsRefused(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		want := "redlock: ttl 10.000000001s is above Config.RestartGuard, 10s"
		_, err := b.lock.TryAcquire(ctx, key, guardFor+1)
		assert.EqualError(b, err, want)
		_, err = b.lock.Acquire(ctx, key, guardFor+1)
		assert.EqualError(b, err, want)
		assert.EqualError(b, b.lock.Do(ctx, key, guardFor+1, func(context.Context) error { return nil }), want)
		l := b.take(b.lock)
		assert.EqualError(b, l.Extend(ctx, guardFor+1), want)
		require.NoError(b, l.Extend(ctx, guardFor))
		b.release(l)
	})
}

// One server listed twice has one vote, and the first operation says so.
func TestOneServerListedTwice(t *testing.T) {
	for _, cfg := range []redlock.Config{{}, guarded, fencing} {
		virtually(t, 2, redlock.Config{}, func(b *bed) {
			var log bytes.Buffer
			cfg := cfg
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			twice := b.masters.Master(0)
			nodes := []redis.UniversalClient{twice.Client(), b.masters.Master(1).Client(), twice.Client()}
			r, err := redlock.New(nodes, cfg)
			require.NoError(b, err)
			for _, acquire := range []func(context.Context, string, time.Duration) (*redlock.Lock, error){r.TryAcquire, r.Acquire} {
				_, err = acquire(ctx, key, ttl)
				require.ErrorIs(b, err, redlock.ErrDuplicateNode)
				assert.EqualError(b, err, `redlock: acquire "orders": one node is listed twice: `+
					twice.Addr()+" and "+twice.Addr()+" (2) are the same server")
			}
			b.settle()
			assert.Empty(b, b.has(key))
			assert.True(b, slices.ContainsFunc(r.Nodes(), func(n redlock.NodeStatus) bool {
				return errors.Is(n.Servers[0].Err, redlock.ErrDuplicateNode)
			}))
			require.NoError(b, r.Close())
			assert.Contains(b, log.String(), "one server is listed as two nodes")
		})
	}
}

// The first operation waits for a slow twin, but not for a hung node, nor for one that
// refuses connections.
func TestTheFirstOperationWaitsALittle(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.delay(5*time.Millisecond, 5*time.Millisecond)
		b.stall(0)
		b.masters.Kill(1)
		assert.Equal(b, 90*time.Millisecond, took(func() { b.release(b.take(b.lock)) }), "20 to shake hands, 10 each, and the wait")
		assert.Equal(b, 20*time.Millisecond, took(func() { b.release(b.take(b.lock)) }), "once")
	})
}

// That wait is no longer than a lock can afford.
func TestTheFirstOperationDoesNotWaitALockAway(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		b.delay(time.Millisecond, time.Millisecond)
		b.stall(0)
		l, err := b.lock.TryAcquire(ctx, key, 60*time.Millisecond)
		require.NoError(b, err)
		assert.Greater(b, time.Until(l.Until()), 20*time.Millisecond)
		b.release(l)
	})
}

func TestTheStatusOfNodes(t *testing.T) {
	virtually(t, 3, guarded, func(b *bed) {
		for _, n := range b.lock.Nodes() {
			assert.Empty(b, n.Servers, "nobody was asked")
		}
		b.warm()
		require.NoError(b, b.masters.Master(1).RestartEmpty())
		now := time.Now()
		for range 2 { // the first finds a connection broken
			l := b.take(b.lock)
			b.settle()
			b.release(l)
		}
		for i, n := range b.lock.Nodes() {
			m := b.masters.Master(i)
			assert.Equal(b, m.Addr(), n.Addr)
			require.Len(b, n.Servers, 1)
			s := n.Servers[0]
			assert.Len(b, s.RunID, 40)
			assert.Equal(b, "master", s.Role)
			if i == 1 {
				assert.Equal(b, now, s.Started)
				assert.Equal(b, now.Add(quarantine), s.Quarantine)
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
