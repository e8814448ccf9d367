package realtest_test

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// recorder keeps the traces of Config.Trace.
type recorder struct {
	mu     sync.Mutex
	rounds []redlock.Trace
}

func (r *recorder) add(t redlock.Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds = append(r.rounds, t)
}

// of returns the finished rounds of an operation on a key.
func (r *recorder) of(op, key string) (found []redlock.Trace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.rounds {
		if t.Op == op && t.Key == key {
			found = append(found, t)
		}
	}
	return found
}

// round waits until the last node has answered in the first round of an operation on a key.
func (f *fleet) round(op, key string) redlock.Trace {
	f.Helper()
	var found []redlock.Trace
	f.eventually(op+" "+key+" is finished", func() bool {
		found = f.rounds.of(op, key)
		return len(found) > 0
	})
	return found[0]
}

// cleanedUp waits until the one refused attempt on a key has been cleaned up on all nodes that were
// asked, and returns their indexes. A refused caller does not wait for all of them, and withdraws
// requests that were not sent by then.
func (f *fleet) cleanedUp(key string) (asked []int) {
	f.Helper()
	f.eventually("the clean-up is through", func() bool {
		asked = nil
		for _, round := range f.rounds.of("acquire", key) {
			for i, n := range round.Nodes {
				if round.Outcome == quorum.Lost && !errors.Is(n.Err, quorum.ErrNotSent) {
					asked = append(asked, i)
				}
			}
		}
		n := 0
		for _, round := range f.rounds.of("clean up", key) {
			n += len(round.Nodes)
		}
		return n > 0 && n == len(asked)
	})
	return asked
}

// granted reports whether every node granted, in the end.
func granted(t redlock.Trace) bool {
	for _, n := range t.Nodes {
		if n.Vote != quorum.Granted {
			return false
		}
	}
	return true
}

// allGrant is a cycle in which every node, and not only a quorum, grants each step. It waits for
// the last votes, because a release withdraws commands that were not sent.
func (f *fleet) allGrant(r *redlock.Redlock, key string) {
	f.Helper()
	l := f.acquire(r, key, ttl)
	all := []redlock.Trace{f.round("acquire", key)}
	require.NoError(f, l.Extend(f.ctx, 2*ttl))
	all = append(all, f.round("extend", key))
	require.NoError(f, f.release(l))
	all = append(all, f.round("release", key))
	for _, round := range all {
		assert.True(f, granted(round), "%+v", round)
	}
}

// allGrantAgain waits until every node grants an acquisition again. Each attempt must succeed
// meanwhile, because the nodes that have not failed are a quorum.
func (f *fleet) allGrantAgain(r *redlock.Redlock, key string) {
	f.Helper()
	f.eventually("all nodes grant", func() bool {
		n := len(f.rounds.of("acquire", key))
		l := f.acquire(r, key, ttl)
		f.eventually("the round is finished", func() bool { return len(f.rounds.of("acquire", key)) > n })
		require.NoError(f, f.release(l))
		return granted(f.rounds.of("acquire", key)[n])
	})
}

// connect makes the Redlock connect to every node before a test begins. Attempts may fail: not
// every test has a NodeTimeout that is long enough to connect.
func (f *fleet) connect(r *redlock.Redlock) {
	f.Helper()
	const key = "warm up"
	f.eventually("all are connected", func() bool {
		n := len(f.rounds.of("acquire", key))
		l, err := r.TryAcquire(f.ctx, key, ttl)
		f.eventually("the round is finished", func() bool { return len(f.rounds.of("acquire", key)) > n })
		if err == nil {
			err = f.release(l)
		}
		return err == nil && granted(f.rounds.of("acquire", key)[n])
	})
	f.gone(key)
}
