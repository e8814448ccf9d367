package realtest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// fencedBy makes a Redlock whose clock is off by offset.
func (f *fleet) fencedBy(offset time.Duration, clients []redis.UniversalClient) *redlock.Redlock {
	f.Helper()
	return f.redlockOf(clients, redlock.Config{Fencing: true, Clock: clock.Skewed(clock.System(), 1, offset)})
}

// Case 5 with tokens: a token that was granted in a lost reply is never granted again. On a
// minority the attempt succeeds, and on a majority it fails. No token is lower than one that was
// granted before, with any clocks.
func TestRealAcquireTokensWithLostReplies(t *testing.T) {
	f := startFleet(t, 5)
	links := f.links()
	once := func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 }
	var clients []*redlock.Redlock
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour} {
		r := f.fencedBy(offset, f.through(links, once))
		f.cycle(r, "warm up")
		clients = append(clients, r)
	}
	last := int64(0)
	for i := range 60 {
		cut := []int{0, 1, 2, 3, 2, 1}[i%6]
		for n := range cut {
			links[(i+n)%5].CutReplies(1000, "eval", "evalsha")
		}
		l, err := clients[i%3].TryAcquire(f.ctx, key, time.Minute)
		if cut < 3 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "connection lost")
		}
		for _, link := range links {
			link.CutReplies(0)
		}
		if err == nil {
			require.Greater(t, l.FencingToken(), last)
			last = l.FencingToken()
			_ = f.release(l) // its connection may be cut; the release is then repeated
		}
		f.gone(key)
		for _, fence := range f.fences() {
			last = max(last, fence)
		}
	}
}

// fences returns the fence of the key that each master remembers.
func (f *fleet) fences() (all []int64) {
	f.Helper()
	for _, admin := range f.admin {
		n, err := admin.Get(f.ctx, fenceKey).Int64()
		if err != redis.Nil {
			require.NoError(f, err)
		}
		all = append(all, n)
	}
	return all
}

// Case 3 with tokens: the scripts are lost while they are in use, on all masters.
func TestRealAcquireTokensAfterAScriptFlush(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{Fencing: true})
	const callers = 16
	var g errgroup.Group
	for i := range callers {
		g.Go(func() error {
			last := int64(0)
			for range 20 {
				l, err := r.TryAcquire(f.ctx, string(rune('A'+i)), ttl)
				if err != nil {
					return err
				}
				if l.FencingToken() <= last {
					return fmt.Errorf("token %d after %d", l.FencingToken(), last)
				}
				last = l.FencingToken()
				if err := l.Extend(f.ctx, time.Hour); err != nil { // keys that are left behind will be seen
					return err
				}
				if err := l.Release(f.ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	f.flushUntilDone(&g)
	for i := range f.servers {
		f.eventually("only the fences are left", func() bool { return f.admin[i].DBSize(f.ctx).Val() == callers })
	}
}

// A release does not overtake a top-up in its batch, even if the server knows only one of the two
// scripts. With tokens both are scripts.
func TestRealReleaseDoesNotOvertakeATopUp(t *testing.T) {
	f := startFleet(t, 5)
	links := f.links()
	patient := func(o *redis.Options) { o.ReadTimeout = hang }
	clients := f.through(links, patient)
	two := &exchanges{}
	clients[2].AddHook(two)
	r := f.redlockOf(clients, redlock.Config{Fencing: true})
	f.allGrant(r, "warm up") // all scripts are known on all connections
	other := f.acquire(r, "other", time.Hour)
	l := f.acquire(r, key, time.Hour)
	f.round("acquire", "other")
	f.round("acquire", key)
	require.NoError(t, f.admin[2].Del(f.ctx, key).Err())

	links[4].Stall()
	require.NoError(t, l.Extend(f.ctx, time.Hour))
	require.NoError(t, other.Extend(f.ctx, time.Hour))
	f.eventually("2 has refused", func() bool { return two.had("evalsha") == 4 })
	links[2].Stall()
	require.NoError(t, other.Extend(f.ctx, 2*time.Hour)) // on its way to 2; later commands queue
	links[4].Resume()
	f.round("extend", key) // ends, and the key is put back on 2
	require.NoError(t, f.admin[2].ScriptFlush(f.ctx).Err())
	for _, known := range []script.Script{script.Extend, script.Release} { // and not that of the top-up
		require.NoError(t, f.admin[2].ScriptLoad(f.ctx, known.Text).Err())
	}
	require.NoError(t, f.release(l))
	links[2].Resume()
	f.round("top up", key)
	f.round("release", key)
	f.round("extend", "other")
	assert.Empty(t, f.has(key), "after its release")
	require.NoError(t, f.release(other))
}

// Each command that extends a lock's life keeps and refreshes its fence. A release leaves the
// fence. A master that comes back without the fence gets it with the key.
func TestRealExtendRefreshesTheFence(t *testing.T) {
	f := startFleet(t, 3, redisserver.Config("maxmemory-policy noeviction"))
	r := f.redlock(redlock.Config{Fencing: true, FenceRetention: time.Hour})
	l := f.acquire(r, key, time.Minute)
	f.onAll(key, l)
	refreshed := func(what string) {
		f.Helper()
		for i, admin := range f.admin {
			f.eventually(fmt.Sprint(what, " on ", i), func() bool {
				return admin.PTTL(f.ctx, fenceKey).Val() > time.Hour-hang &&
					admin.Get(f.ctx, fenceKey).Val() == strconv.FormatInt(l.FencingToken(), 10)
			})
		}
	}
	refreshed("acquired")
	for _, admin := range f.admin {
		require.NoError(t, admin.PExpire(f.ctx, fenceKey, time.Minute).Err())
	}
	require.NoError(t, l.Extend(f.ctx, time.Minute))
	refreshed("extended")
	f.kill(1)
	f.restart(1)
	f.eventually("it has the key again", func() bool {
		require.NoError(t, l.Extend(f.ctx, time.Minute))
		return len(f.has(key, 1)) == 1
	})
	refreshed("topped up")
	require.NoError(t, f.release(l))
	f.gone(key)
	refreshed("released")

	// Another client keeps its fences for longer. That is not shortened.
	for _, fair := range []bool{false, true} {
		for _, admin := range f.admin {
			require.NoError(t, admin.PExpire(f.ctx, fenceKey, 24*time.Hour).Err())
		}
		l = f.acquire(f.redlock(redlock.Config{Fencing: true, FenceRetention: time.Hour, Fair: fair}), key, time.Minute)
		f.onAll(key, l)
		require.NoError(t, l.Extend(f.ctx, time.Minute))
		f.round("extend", key)
		require.NoError(t, f.release(l))
		f.gone(key)
		for _, admin := range f.admin {
			assert.Greater(t, admin.PTTL(f.ctx, fenceKey).Val(), 24*time.Hour-hang)
			assert.Equal(t, strconv.FormatInt(l.FencingToken(), 10), admin.Get(f.ctx, fenceKey).Val())
		}
	}
}
