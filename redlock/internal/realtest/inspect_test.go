package realtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// The rights that docs/operations.md lists for inspecting a lock, and for breaking it.
var (
	lookingRights  = []string{"~lock:*", "~redlock:queued:*lock:*", "+get", "+pttl", "+evalsha", "+eval"}
	breakingRights = append([]string{"+del"}, lookingRights...)
)

// Users with different rights inspect a lock with a fence and a waiter. A part that a user may not
// see does not hide the rest. Inspecting needs no right to break locks, and breaking needs no right
// to acquire them.
func TestRealInspectRights(t *testing.T) {
	const fences = "~redlock:fence:*lock:*"
	f := startFleet(t, 3, redisserver.ACL(
		user("holder", append([]string{fences}, wakingRights...)...),
		user("locker", minimalRights...), user("waker", wakingRights...),
		user("looks", lookingRights...), user("breaks", breakingRights...),
		user("looks-at-fences", append([]string{fences}, lookingRights...)...),
		user("looks-at-queues", append([]string{"~redlock:queue:*lock:*", "+zcount"}, lookingRights...)...),
		user("blind", "~lock:*", "~redlock:queued:*lock:*", "+pttl", "+evalsha", "+eval"),
		user("elsewhere", "~other:*", "+@all"),
	))
	fenced := prefixed
	fenced.Fencing = true
	l := f.acquire(f.redlockOf(f.clients(as("holder")), fenced), key, time.Hour)
	f.onAll("lock:"+key, l)
	w := f.wait(f.redlockOf(f.clients(as("holder")), fenced), key, ttl)
	f.queued("lock:"+key, 1)

	for name, want := range map[string]struct {
		waiting int
		fence   int64
	}{
		"holder":          {1, l.FencingToken()},
		"locker":          {-1, -1},
		"waker":           {1, -1},
		"looks":           {-1, -1},
		"looks-at-fences": {-1, l.FencingToken()},
		"looks-at-queues": {1, -1},
	} {
		r := f.redlockOf(f.clients(as(name)), prefixed)
		for range 2 { // the first call sends the whole script
			i, err := r.Inspect(f.ctx, key)
			require.NoError(t, err)
			assert.Equal(t, redlock.VerdictHeld, i.Verdict(), name)
			for _, n := range i.Nodes {
				assert.NoError(t, n.Err, name)
				assert.Equal(t, l.Value(), n.Value(), name)
				assert.Equal(t, want.waiting, n.Waiting, name)
				assert.Equal(t, want.fence, n.Fence, name)
				assert.InDelta(t, time.Hour, n.TTL, float64(hang))
			}
		}
	}
	for name, says := range map[string]string{"blind": "can't run this command", "elsewhere": "NOPERM"} {
		i, err := f.redlockOf(f.clients(as(name)), prefixed).Inspect(f.ctx, key)
		require.NoError(t, err)
		assert.Equal(t, redlock.VerdictUnknown, i.Verdict(), name)
		assert.ErrorContains(t, i.Nodes[0].Err, says)
		assert.NotContains(t, fmt.Sprint(i.Nodes[0].Err), aclPassword)
	}

	looks := f.redlockOf(f.clients(as("looks")), prefixed)
	i, err := looks.Inspect(f.ctx, key)
	require.NoError(t, err)
	_, err = looks.ForceRelease(f.ctx, i)
	assert.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.ErrorContains(t, err, "can't run this command")
	assert.NotContains(t, fmt.Sprint(err), l.Value())
	require.NoError(t, l.Extend(f.ctx, time.Hour))

	// A user that may not wake still breaks the lock. The next waiter finds out by itself.
	deleted, err := f.redlockOf(f.clients(as("breaks")), prefixed).ForceRelease(f.ctx, i)
	require.NoError(t, err)
	assert.Len(t, deleted, 3)
	next := w.got()
	assert.Greater(t, next.FencingToken(), l.FencingToken())
	assert.ErrorIs(t, f.release(l), redlock.ErrNotHeld)
	require.NoError(t, f.release(next))
}

// A Cluster is one node, whichever shard the key, its queue and its fence are on.
func TestRealInspectACluster(t *testing.T) {
	c := startClustered(t, 3)
	fenced := redlock.Config{Fencing: true}
	holder, waits, operator := c.redlock(fenced), c.redlock(fenced), c.redlock(redlock.Config{})
	for _, keys := range c.keys(1) {
		for _, key := range []string{keys[0], "{" + keys[0] + "}:tagged", keys[0] + "}"} {
			l := c.acquire(holder, key, time.Hour)
			c.onAll(key, l, c.all()...)
			c.eventually("the Cluster has our value", func() bool { return c.client.Get(c.ctx, key).Val() == l.Value() })
			w := c.wait(waits, key, ttl)
			c.queued(key, 1, c.all()...)
			c.eventually("the Cluster has one in the queue", func() bool {
				return c.client.ZCount(c.ctx, queueKey(key), tickets, "+inf").Val() == 1
			})
			i, err := operator.Inspect(c.ctx, key)
			require.NoError(t, err)
			for _, n := range i.Nodes {
				require.NoError(t, n.Err)
				assert.Equal(t, l.Value(), n.Value())
				assert.Equal(t, 1, n.Waiting)
				assert.Equal(t, l.FencingToken(), n.Fence)
			}
			deleted, err := operator.ForceRelease(c.ctx, i)
			require.NoError(t, err)
			assert.Len(t, deleted, 3)
			require.NoError(t, c.release(w.got()))
			assert.ErrorIs(t, c.release(l), redlock.ErrNotHeld)
			c.goneEverywhere(key)
		}
	}
}

// Scripts that a server forgot are sent again. A value that is not a lock stays as it is.
func TestRealInspectAfterAScriptFlush(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{})
	for _, a := range f.admin {
		require.NoError(t, a.HSet(f.ctx, key, "a", "hash").Err())
	}
	for range 3 {
		i, err := r.Inspect(f.ctx, key)
		require.NoError(t, err)
		assert.Equal(t, redlock.VerdictForeign, i.Verdict())
		assert.ErrorContains(t, i.Nodes[0].Err, "has a hash under this key")
		deleted, err := r.ForceRelease(f.ctx, i)
		assert.ErrorIs(t, err, redlock.ErrForeign)
		assert.Empty(t, deleted)
		f.flushScripts()
	}
	assert.Equal(t, f.all(), f.has(key))
}
