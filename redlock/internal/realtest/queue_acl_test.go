package realtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/redlock"
)

const refusesToQueue = "node does not let us queue"

// permitted returns a Redlock of an ACL user, and its log.
func (f *fleet) permitted(name string, said *[]*spoken) (*redlock.Redlock, *spy.Log) {
	f.Helper()
	log := &spy.Log{}
	cfg := prefixed
	cfg.Logger = log.Logger()
	clients := f.clients(as(name))
	if said != nil {
		*said = overhear("lock:"+key, clients)
	}
	return f.redlockOf(clients, cfg), log
}

// With the rights that the docs list for it, a wait is woken, and stays subscribed for longer than
// a connection may be silent.
func TestRealAcquireWithTheRightsToWake(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(user("waker", wakingRights...)))
	var said []*spoken
	r, log := f.permitted("waker", &said)
	holder, _ := f.permitted("waker", nil)
	l := f.acquire(holder, key, time.Hour)
	f.onAll("lock:"+key, l)
	w := f.wait(r, key, ttl)
	f.queued("lock:"+key, 1)
	f.heard("lock:" + key)
	before, tried := f.listenerIDs(), total(said, "try")
	for i, pings := range f.pings() {
		f.eventually("a silent connection is tried", func() bool { return f.calls(i, "ping") > pings })
	}
	assert.Equal(t, before, f.listenerIDs())
	assert.Equal(t, tried, total(said, "try"), "it does not poll")
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
	for i := range f.all() {
		assert.Positive(t, f.calls(i, "publish"))
	}
	assert.Zero(t, log.Says(refusesToQueue))
	f.clean("lock:" + key)
}

// listenerIDs returns the ids of the connections that wait for messages.
func (f *fleet) listenerIDs() (ids []string) {
	f.Helper()
	for _, a := range f.admin {
		clients, err := a.Do(f.ctx, "client", "list", "type", "pubsub").Text()
		require.NoError(f, err)
		for line := range strings.Lines(clients) {
			id, _, _ := strings.Cut(line, " ")
			ids = append(ids, id)
		}
	}
	return ids
}

// Without these rights a waiter tries after pauses, and logs that once for each node.
func TestRealAcquireWithoutTheRightsToQueue(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(user("locker", minimalRights...)))
	var said []*spoken
	r, log := f.permitted("locker", &said)
	holder, _ := f.permitted("locker", nil)
	for range 3 {
		l := f.acquire(holder, key, time.Hour)
		f.onAll("lock:"+key, l)
		w := f.wait(r, key, ttl)
		before := total(said, "set")
		f.eventually("it polls", func() bool { return total(said, "set") > before+5*len(said) })
		require.NoError(t, f.release(l))
		require.NoError(t, f.release(w.got()))
		f.gone("lock:" + key)
	}
	f.eventually("the log is written", func() bool { return log.Says("\n") >= len(f.servers) })
	for _, s := range f.servers {
		assert.Equal(t, 1, log.Says("node="+s.Addr()))
	}
	assert.Equal(t, len(f.servers), log.Says(refusesToQueue))
	assert.Equal(t, len(f.servers), log.Says("\n"), "and nothing else")
	assert.NotContains(t, log.String(), aclPassword)
	f.nobodyWaits()
}

// A node that denies queueing or subscribing is a minority like any other: the others wake the
// waiter.
func TestRealAcquireWithoutTheRightsToQueueOnOneNode(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(user("locker", minimalRights...), user("waker", wakingRights...)))
	var log spy.Log
	cfg := prefixed
	cfg.Logger = log.Logger()
	clients := append(f.clients(as("waker"))[:2], f.servers[2].Client(as("locker")))
	said := overhear("lock:"+key, clients)
	r := f.redlockOf(clients, cfg)
	l := f.acquire(f.redlock(prefixed), key, time.Hour)
	f.onAll("lock:"+key, l)
	w := f.wait(r, key, ttl)
	f.queued("lock:"+key, 1, 0, 1)
	f.eventually("it listens", func() bool { return slices.Equal(f.listeners(), []int{1, 1, 0}) })
	f.eventually("it looks by itself", func() bool { return said[0].count("enqueue")+said[1].count("enqueue") > 4 })
	tries := total(said, "set") + total(said, "try")
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
	assert.LessOrEqual(t, total(said, "set")+total(said, "try"), tries+2*len(said), "it was woken")
	assert.Equal(t, 1, log.Says(refusesToQueue))
	assert.Equal(t, 1, log.Says("node="+f.servers[2].Addr()))
	f.clean("lock:" + key)
}

// Without any one of the rights a waiter still gets the lock. If the log reports it, it does so
// once for each node.
func TestRealAcquireWithoutOneOfTheRightsToWake(t *testing.T) {
	rights := append(slices.Clone(queueRights), "+subscribe", "+publish")
	tells := []string{"&redlock:wake:*", "+subscribe", "+zadd", "+zrange", "+zcount"} // at once
	var users []string
	for i, lacking := range rights {
		all := slices.DeleteFunc(slices.Clone(wakingRights), func(right string) bool { return right == lacking })
		users = append(users, user(fmt.Sprintf("lacks%d", i), all...))
	}
	for i, lacking := range rights {
		t.Run(lacking, func(t *testing.T) {
			f := startFleet(t, 3, redisserver.ACL(users...))
			name := fmt.Sprintf("lacks%d", i)
			r, log := f.permitted(name, nil)
			holder, _ := f.permitted(name, nil)
			l := f.acquire(holder, key, time.Hour)
			f.onAll("lock:"+key, l)
			w := f.wait(r, key, time.Second)
			switch {
			case lacking == "+ping":
				f.eventually("it listens", func() bool { return slices.Equal(f.listeners(), []int{1, 1, 1}) })
				ids := f.listenerIDs()
				f.eventually("a silent connection is made again", func() bool { return !slices.Equal(f.listenerIDs(), ids) })
			case slices.Contains(tells, lacking):
				f.eventually("the log tells", func() bool { return log.Says(refusesToQueue) == len(f.servers) })
			}
			_ = f.release(l) // the user may not be able to wake
			_ = f.release(w.got())
			for _, s := range f.servers {
				assert.LessOrEqual(t, log.Says("node="+s.Addr()), 1)
			}
			f.gone("lock:" + key)
		})
	}
}

// A user without the rights to queue releases a key for which a user with them waits, and its
// release succeeds.
func TestRealReleaseWithoutTheRightsToQueue(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(user("locker", minimalRights...), user("waker", wakingRights...)))
	r, _ := f.permitted("waker", nil)
	holder, _ := f.permitted("locker", nil)
	l := f.acquire(holder, key, time.Hour)
	f.onAll("lock:"+key, l)
	w := f.wait(r, key, ttl)
	f.queued("lock:"+key, 1)
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
}
