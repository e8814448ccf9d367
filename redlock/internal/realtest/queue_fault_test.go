package realtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// The scripts are lost while a client waits, and while locks are handed over.
func TestRealAcquireWaitsThroughAScriptFlush(t *testing.T) {
	f := startFleet(t, 3)
	all := f.redlocks(5, redlock.Config{})
	l := f.hold(all[0], key)
	f.flushScripts()
	line := f.line(key, ttl, all[1:]...)
	f.heard(key)
	f.flushScripts()
	require.NoError(t, f.release(l))
	for _, w := range line {
		l := w.got()
		f.flushScripts()
		require.NoError(t, f.release(l))
	}
	f.clean(key)
}

// The scripts are lost at any moment of a contended run.
func TestRealAcquireUnderContentionAndScriptFlushes(t *testing.T) {
	f := startFleet(t, 3)
	var shared resource
	f.flushUntilDone(f.contend(&shared, 20, f.redlocks(6, redlock.Config{})...))
	assert.Equal(t, 6*20, shared.uses)
	f.clean(key)
}

// Connections of subscriptions are broken at the moment in which the lock is released. Every waiter
// gets the lock in the end.
func TestRealAcquireWhenSubscriptionsBreakDuringTheRelease(t *testing.T) {
	for name, which := range map[string][]int{
		"one": {3}, "minority": {0, 2}, "majority": {1, 2, 4}, "all": {0, 1, 2, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 5)
			all := f.redlocks(4, redlock.Config{})
			l := f.hold(all[0], key)
			line := f.line(key, ttl, all[1:]...)
			f.heard(key)
			for _, i := range which {
				killed, err := f.admin[i].ClientKillByFilter(f.ctx, "TYPE", "pubsub").Result()
				require.NoError(t, err)
				require.EqualValues(t, len(line), killed)
			}
			require.NoError(t, f.release(l))
			f.takeTurns(line)
			f.clean(key)
		})
	}
}

// Subscriptions are broken while the lock is held. They are restored, and with them the queue
// entries.
func TestRealAcquireRestoresBrokenSubscriptions(t *testing.T) {
	f := startFleet(t, 3)
	clients := f.clients()
	said := overhear(key, clients)
	r := f.redlockOf(clients, redlock.Config{})
	l := f.hold(f.redlock(redlock.Config{}), key)
	f.listening(r)
	w := f.line(key, ttl, r)[0]
	f.heard(key)
	for i, a := range f.admin {
		stood := said[i].count("enqueue")
		require.NoError(t, a.ClientKillByFilter(f.ctx, "TYPE", "pubsub").Err())
		f.eventually("it has asked for its place again", func() bool { return said[i].count("enqueue") > stood })
	}
	f.heard(key)
	assert.Zero(t, total(said, "try"))
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
	for i, s := range said {
		assert.LessOrEqual(t, s.count("try"), 2, "it was woken, master %d", i)
	}
	f.nobodyWaits()
}

// The first in the queue has died without closing its connections, which nobody reads. The next
// waiter gets the lock, and then the one after it.
func TestRealAcquireBehindAFrozenWaiter(t *testing.T) {
	f := startFleet(t, 3)
	links := f.links()
	dead := f.redlockOf(f.through(links), redlock.Config{})
	all := f.redlocks(3, redlock.Config{})
	l := f.hold(all[0], key)
	line := f.line(key, ttl, dead, all[1], all[2])
	f.heard(key)
	for _, link := range links {
		link.Stall()
	}
	t.Cleanup(func() { // Close would wait for them
		for _, link := range links {
			link.Resume()
		}
	})
	require.NoError(t, f.release(l))
	assert.Equal(t, []int{0, 1}, f.takeTurns(line[1:]))
	require.False(t, line[0].over())

	// It was not dead. It gets its turn, whether or not its connections broke.
	for _, link := range links {
		link.Resume()
	}
	require.NoError(t, f.release(line[0].got()))
	f.clean(key)
}

// A waiter is gone, and its connections ended. It has no subscription, and is skipped at once.
func TestRealAcquireBehindAWaiterThatIsGone(t *testing.T) {
	f := startFleet(t, 3)
	links := f.links()
	dead := f.redlockOf(f.through(links), redlock.Config{})
	all := f.redlocks(2, redlock.Config{})
	l := f.hold(all[0], key)
	line := f.line(key, ttl, dead, all[1])
	f.heard(key)
	for _, link := range links {
		link.Refuse()
		link.Break()
	}
	for i := range f.all() {
		f.eventually("the master knows", func() bool { return f.listeners()[i] == 1 })
	}
	f.queued(key, 2)
	require.NoError(t, f.release(l))
	next := line[1].got()
	f.queued(key, 0)
	require.False(t, line[0].over())
	require.NoError(t, f.release(next))
	for _, link := range links {
		require.NoError(t, link.Accept())
	}
	require.NoError(t, f.release(line[0].got()))
	f.clean(key)
}

// Masters die, come back empty and lose their memory while several clients wait. All of them get
// their turn.
func TestRealAcquireWaitsWhileMastersFail(t *testing.T) {
	for name, fail := range map[string]func(f *fleet, which ...int){
		"killed": (*fleet).kill,
		"restarted": func(f *fleet, which ...int) {
			f.kill(which...)
			f.restart(which...)
		},
		"flushed": func(f *fleet, which ...int) {
			for _, i := range which {
				require.NoError(f, f.admin[i].FlushAll(f.ctx).Err())
			}
		},
	} {
		for when, held := range map[string]bool{"while it is held": true, "as it is released": false} {
			t.Run(fmt.Sprintf("%s %s", name, when), func(t *testing.T) {
				f := startFleet(t, 5)
				all := f.redlocks(5, redlock.Config{})
				l := f.hold(all[0], key)
				line := f.line(key, ttl, all[1:]...)
				f.heard(key)
				living := []int{0, 2, 3}
				if held {
					fail(f, 1, 4)
					require.NoError(t, l.Extend(f.ctx, time.Hour))
					require.NoError(t, f.release(l))
				} else {
					released := make(chan error, 1)
					go func() { released <- l.Release(f.ctx) }()
					fail(f, 1, 4)
					require.NoError(t, <-released)
				}
				f.takeTurns(line)
				if name != "killed" {
					living = f.all()
				}
				f.clean(key, living...)
			})
		}
	}
}

// A majority forgets the lock and the queue: a waiter finds out by itself.
func TestRealAcquireWaitsWhileAMajorityIsFlushed(t *testing.T) {
	f := startFleet(t, 3)
	all := f.redlocks(4, redlock.Config{})
	l := f.hold(all[0], key)
	line := f.line(key, ttl, all[1:]...)
	for _, i := range []int{0, 2} {
		require.NoError(t, f.admin[i].FlushAll(f.ctx).Err())
	}
	f.takeTurns(line)
	require.ErrorIs(t, f.release(l), redlock.ErrNotHeld)
	f.clean(key)
}

// A node that hangs for all waiters delays none of them.
func TestRealAcquireWaitsWhileANodeHangs(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			f := startFleet(t, 3)
			var clients [][]redis.UniversalClient
			var stop, goOn []func(int)
			for range 3 {
				c, hang, resume := way.prepare(f)
				clients, stop, goOn = append(clients, c), append(stop, hang), append(goOn, resume)
			}
			holder := f.redlock(redlock.Config{})
			l := f.hold(holder, key)
			var all []*redlock.Redlock
			for _, c := range clients {
				all = append(all, f.redlockOf(c, redlock.Config{NodeTimeout: time.Second}))
			}
			line := f.line(key, ttl, all...)
			each := func(do []func(int)) {
				for _, of := range do {
					of(1)
				}
			}
			t.Cleanup(func() { each(goOn) })
			each(stop)
			require.NoError(t, f.release(l))
			f.takeTurns(line)
			each(goOn)
			f.clean(key)
		})
	}
}
