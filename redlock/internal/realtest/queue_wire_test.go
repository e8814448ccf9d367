package realtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A Redlock that never waits sends the same commands as without queues: a SET NX PX and an EVALSHA
// to each node, over one connection.
func TestRealAcquireWithoutAWaitOnTheWire(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{})
	f.allGrant(r, "warm up")
	connected := f.connections()
	nodes := f.watch()
	for i := range 5 {
		name := fmt.Sprint("key ", i)
		l := f.acquire(r, name, ttl)
		f.round("acquire", name)
		require.NoError(t, f.release(l))
		f.round("release", name)
		for _, m := range nodes {
			sent := m.sent()
			require.Len(t, sent, 2)
			assert.Equal(t, quoted("set", name, l.Value(), "nx", "px", ttl.Milliseconds()), sent[0])
			assert.Regexp(t, `^"evalsha" "[0-9a-f]{40}" `+quoted(2, name, flagKey(name), l.Value())+`$`, sent[1])
		}
	}
	// The same holds for Acquire, if the key is free.
	l, err := r.Acquire(f.ctx, key, ttl)
	require.NoError(t, err)
	f.round("acquire", key)
	for _, m := range nodes {
		assert.Equal(t, []string{quoted("set", key, l.Value(), "nx", "px", ttl.Milliseconds())}, m.sent())
	}
	require.NoError(t, f.release(l))
	assert.Equal(t, []int{0, 0, 0}, f.listeners())
	for i, n := range f.connections() {
		assert.Equal(t, connected[i]+1, n, "one more, of MONITOR")
	}
}

// pings returns how many PINGs each master has executed.
func (f *fleet) pings() (n []int) {
	f.Helper()
	for i := range f.servers {
		n = append(n, f.calls(i, "ping"))
	}
	return n
}

// connections returns how many connections each master has.
func (f *fleet) connections() (n []int) {
	f.Helper()
	for _, a := range f.admin {
		clients, err := a.ClientList(f.ctx).Result()
		require.NoError(f, err)
		n = append(n, strings.Count(clients, "id="))
	}
	return n
}

// lua returns the commands that scripts have called on a master since the last look.
func (m *monitor) lua() (verbs []string) {
	m.f.Helper()
	for _, command := range m.look(true) {
		verb, _, _ := strings.Cut(command, " ")
		verbs = append(verbs, strings.ToUpper(strings.Trim(verb, `"`)))
	}
	return verbs
}

// A release without waiters reads the key and deletes it, and no more.
func TestRealReleaseWithoutAQueue(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{})
	f.allGrant(r, "warm up")
	nodes := f.watch()
	l := f.acquire(r, key, ttl)
	f.round("acquire", key)
	require.NoError(t, f.release(l))
	f.round("release", key)
	for _, m := range nodes {
		assert.Equal(t, []string{"GET", "DEL"}, m.lua())
	}
}

// A hundred waits of one Redlock share one subscription connection to each node. It is closed some
// time after the last of them, and opened again for the next.
func TestRealAcquireSubscribesOncePerNode(t *testing.T) {
	f := startFleet(t, 3)
	holder, r := f.redlock(redlock.Config{}), f.redlock(redlock.Config{})
	const keys = 100
	var locks []*redlock.Lock
	for i := range keys {
		locks = append(locks, f.acquire(holder, fmt.Sprint(i), time.Hour))
	}
	connected := f.connections() // r has none yet
	var waits []*waiting
	for i := range keys {
		waits = append(waits, f.wait(r, fmt.Sprint(i), time.Minute))
	}
	for i := range keys {
		f.queued(fmt.Sprint(i), 1)
	}
	one, none := []int{1, 1, 1}, []int{0, 0, 0}
	f.eventually("it listens", func() bool { return slices.Equal(f.listeners(), one) })
	for i, n := range f.connections() {
		assert.Equal(t, connected[i]+2, n, "one for commands, one for messages")
	}
	ids := f.listenerIDs()
	for i, w := range waits[:keys-1] {
		if i%2 == 0 {
			w.cancel()
			<-w.done
		}
		require.NoError(t, f.release(locks[i]))
		if i%2 == 1 {
			require.NoError(t, f.release(w.got()))
		}
	}
	assert.Equal(t, ids, f.listenerIDs(), "the same all the while")
	last := waits[keys-1]
	for i, pings := range f.pings() {
		f.eventually("it is tried when nobody says anything", func() bool { return f.calls(i, "ping") > pings || last.over() })
	}
	assert.Equal(t, ids, f.listenerIDs())
	require.NoError(t, f.release(locks[keys-1]))
	require.NoError(t, f.release(last.got()))
	f.nobodyWaits()
	assert.Equal(t, ids, f.listenerIDs(), "it is kept for a while")
	f.eventually("it is given up", func() bool { return slices.Equal(f.listeners(), none) })

	l := f.hold(holder, key)
	w := f.wait(r, key, ttl)
	f.queued(key, 1)
	f.heard(key)
	assert.Equal(t, one, f.listeners())
	require.NoError(t, f.release(l))
	require.NoError(t, f.release(w.got()))
	f.nobodyWaits()
}
