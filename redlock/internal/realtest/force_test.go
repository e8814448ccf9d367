package realtest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/redlock"
)

// kept returns a lock that has been renewed once, and is not renewed again for twenty minutes.
func (f *fleet) kept(r *redlock.Redlock, key string) *redlock.Lock {
	f.Helper()
	l := f.acquire(r, key, 900*time.Millisecond)
	l.KeepAlive()
	require.NoError(f, l.Extend(f.ctx, time.Hour))
	f.eventually("it is renewed", func() bool { return len(f.rounds.of("extend", key)) >= 2 })
	return l
}

// breakable waits until so many clients on each of the masters are subscribed to broken locks.
func (f *fleet) breakable(n int64, of ...int) {
	f.Helper()
	for _, i := range of {
		f.eventually(fmt.Sprintf("master %d has %d holders who listen", i, n), func() bool {
			return f.admin[i].PubSubNumSub(f.ctx, spy.BrokenChannel).Val()[spy.BrokenChannel] == n
		})
	}
}

// breaks lets a Redlock break the lock that it finds.
func (f *fleet) breaks(r *redlock.Redlock, key string) (deleted []string) {
	f.Helper()
	i, err := r.Inspect(f.ctx, key)
	require.NoError(f, err)
	deleted, err = r.ForceRelease(f.ctx, i)
	require.NoError(f, err)
	return deleted
}

// losesLock waits until the lock's holder knows that it has lost it.
func (f *fleet) losesLock(l *redlock.Lock) {
	f.Helper()
	select {
	case <-l.Context().Done():
		assert.Equal(f, redlock.ErrNotHeld, context.Cause(l.Context()))
	case <-f.ctx.Done():
		require.Fail(f, "the holder did not notice")
	}
	assert.ErrorIs(f, f.release(l), redlock.ErrNotHeld)
}

// The holder knows twenty minutes before its next renewal, even while a minority is down.
func TestRealForceReleaseNotifiesTheHolder(t *testing.T) {
	f := startFleet(t, 5)
	holder, operator := f.redlock(redlock.Config{}), f.redlock(redlock.Config{})
	l := f.kept(holder, "all up")
	f.onAll("all up", l)
	f.breakable(1, f.all()...)
	assert.Len(t, f.breaks(operator, "all up"), 5)
	f.losesLock(l)
	f.gone("all up")

	f.kill(1, 3)
	l = f.kept(holder, "two down")
	f.onAll("two down", l, 0, 2, 4)
	f.breakable(1, 0, 2, 4)
	assert.Len(t, f.breaks(operator, "two down"), 3)
	f.losesLock(l)
	f.gone("two down", 0, 2, 4)
}

// A holder needs three more rights to get the message, and a client that breaks its lock needs two.
// Without them the lock is still kept and broken, and nothing is logged.
func TestRealForceReleaseRights(t *testing.T) {
	listening := []string{"&redlock:wake:*", "+subscribe", "+ping"}
	telling := []string{"&redlock:wake:*", "+publish"}
	f := startFleet(t, 3, redisserver.ACL(
		user("locker", minimalRights...),
		user("listener", slices.Concat(minimalRights, listening)...),
		user("breaks", breakingRights...),
		user("tells", slices.Concat(breakingRights, telling)...),
		user("silenced", append(slices.Clone(breakingRights), "+publish")...), // on no channel
	))
	listener, heard := f.permitted("listener", nil)
	locker, said := f.permitted("locker", nil)
	breaks, tells, silenced := f.redlockOf(f.clients(as("breaks")), prefixed), f.redlockOf(f.clients(as("tells")), prefixed), f.redlockOf(f.clients(as("silenced")), prefixed)

	l := f.kept(listener, "notified")
	f.onAll("lock:notified", l)
	f.breakable(1, f.all()...)
	assert.Len(t, f.breaks(tells, "notified"), 3)
	f.losesLock(l)
	assert.Equal(t, 1, heard.Says("lock lost"))
	assert.Zero(t, heard.Says(spy.Broken(l.Value())[len("broken "):][:16]))

	for name, r := range map[string]*redlock.Redlock{"not notified": breaks, "on no channel": silenced} {
		l = f.kept(listener, name)
		f.onAll("lock:"+name, l)
		f.breakable(1, f.all()...)
		assert.Len(t, f.breaks(r, name), 3)
		f.gone("lock:" + name)
		assert.NoError(t, l.Context().Err(), "its next renewal finds out")
		assert.ErrorIs(t, f.release(l), redlock.ErrNotHeld)
	}

	l = f.kept(locker, "unsubscribed")
	f.onAll("lock:unsubscribed", l)
	for i := range f.all() {
		f.eventually("it was not let in", func() bool { return f.refusals(i, "subscribe") > 0 })
	}
	assert.NoError(t, l.Context().Err())
	assert.Len(t, f.breaks(tells, "unsubscribed"), 3)
	assert.ErrorIs(t, f.release(l), redlock.ErrNotHeld)
	assert.Zero(t, said.Says("\n"), "a kept lock needs no messages")
}

// refusals returns how often a server has denied a command.
func (f *fleet) refusals(i int, command string) (n int) {
	f.Helper()
	entries, err := f.admin[i].ACLLog(f.ctx, 100).Result()
	require.NoError(f, err)
	for _, e := range entries {
		if e.Object == command {
			n += int(e.Count)
		}
	}
	return n
}

// A Cluster publishes the message on a channel in the key's slot, which only the key's shard has.
func TestRealForceReleaseNotifiesTheHolderOnACluster(t *testing.T) {
	c := startClustered(t, 3)
	holder, operator := c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
	c.kill(1) // makes the Cluster's message necessary
	for shard, keys := range c.keys(2) {
		for _, key := range keys {
			l := c.kept(holder, key)
			c.onAll(key, l, 0)
			c.eventually("the Cluster has our value", func() bool { return c.client.Get(c.ctx, key).Val() == l.Value() })
			c.breakable(1, 0)
			c.brokenOn(shard, key)
			assert.Len(t, c.breaks(operator, key), 2)
			c.losesLock(l)
		}
	}
}

// brokenOn waits until a holder of the key is subscribed on that shard.
func (c *clustered) brokenOn(shard int, key string) {
	c.Helper()
	channel := "redlock:wake:{" + slot.Tag(key) + "}broken"
	c.eventually("a holder listens on the shard", func() bool {
		n, err := c.cluster.Servers()[shard].Client().PubSubShardNumSub(c.ctx, channel).Result()
		return err == nil && n[channel] == 1
	})
}

// When the slot of a kept lock's key moves, the next renewals subscribe to its new shard.
func TestRealKeepAliveSubscribesWhereItsSlotMoves(t *testing.T) {
	c := startClustered(t, 2)
	holder, operator := c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
	c.kill(1)
	l := c.acquire(holder, key, 5*time.Second) // it outlives the move on a busy machine
	l.KeepAlive()
	c.brokenOn(c.shard(key), key)
	_, to := c.moveSlot(key)
	c.brokenOn(to, key)
	require.NoError(t, l.Context().Err())
	assert.Len(t, c.breaks(operator, key), 2)
	c.losesLock(l)
}
