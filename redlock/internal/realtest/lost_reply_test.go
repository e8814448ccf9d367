package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// sets returns how many SETs each master has executed.
func (f *fleet) sets() (n []int) {
	for i := range f.servers {
		n = append(n, f.calls(i, "set"))
	}
	return n
}

// Case 5: the SET is applied, and its reply is lost. go-redis would send it again, and take our own
// key for another client's. On a minority the lost reply costs nothing, and the key there is
// recognized as ours.
func TestRealAcquireWithALostReplyOnAMinority(t *testing.T) {
	f := startFleet(t, 5)
	links := f.links()
	r := f.redlockOf(f.through(links), redlock.Config{})
	links[0].CutReplies(1, "set")
	links[3].CutReplies(1, "set")
	l := f.acquire(r, key, ttl)
	acquired := f.round("acquire", key)
	for i, n := range acquired.Nodes {
		want := quorum.Granted
		if i == 0 || i == 3 {
			want = quorum.Failed
		}
		assert.Equal(t, want, n.Vote, "node %d", i)
	}
	f.onAll(key, l)
	assert.Equal(t, []int{1, 1, 1, 1, 1}, f.sets(), "it went over the wire once")

	f.eventually("an extension finds our key on all", func() bool {
		require.NoError(t, l.Extend(f.ctx, ttl))
		last := f.rounds.of("extend", key)
		return len(last) > 0 && granted(last[len(last)-1])
	})
	require.NoError(t, f.release(l))
	f.gone(key)
	assert.Equal(t, []int{1, 1, 1, 1, 1}, f.sets(), "nothing had to be topped up")
}

// Case 5 on a majority: there is no quorum, which is not "held", and the keys that were set are
// deleted.
func TestRealAcquireWithALostReplyOnAMajority(t *testing.T) {
	f := startFleet(t, 5)
	links := f.links()
	r := f.redlockOf(f.through(links), redlock.Config{})
	for _, i := range []int{1, 2, 4} {
		links[i].CutReplies(1, "set")
	}
	_, err := r.TryAcquire(f.ctx, key, time.Hour)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.NotErrorIs(t, err, redlock.ErrHeld)
	assert.Contains(t, fmt.Sprint(err), "connection lost")
	f.gone(key)
	for _, i := range []int{1, 2, 4} {
		assert.Zero(t, links[i].CutsLeft())
		assert.Equal(t, 1, f.calls(i, "set"))
	}
	f.cycle(r, key)
	f.gone(key)
}

// A release whose reply is lost is repeated, which is safe.
func TestRealReleaseWithALostReply(t *testing.T) {
	f := startFleet(t, 3)
	links := f.links()
	r := f.redlockOf(f.through(links), redlock.Config{})
	f.cycle(r, "warm up")
	l := f.hold(r, key)
	links[0].CutReplies(1, "eval", "evalsha")
	links[1].CutReplies(1, "eval", "evalsha")
	err := f.release(l)
	require.ErrorIs(t, err, redlock.ErrNoQuorum, "two did not say")
	f.gone(key)
	assert.Equal(t, redlock.ErrReleased, context.Cause(l.Context()))
}

// Case 4: the SET arrives long after the timeout, and the clean-up after it. On different
// connections the release would arrive before the SET.
func TestRealAcquireDeletesTheKeyOfALateSet(t *testing.T) {
	const late = 700 * time.Millisecond
	for name, delayed := range map[string][]int{"majority": {0, 1, 4}, "minority": {2, 3}} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 5)
			links := f.links()
			r := f.redlockOf(f.through(links), redlock.Config{NodeTimeout: 50 * time.Millisecond})
			f.connect(r)
			before := f.sets()
			for _, i := range delayed {
				links[i].Delay(late)
			}
			l, err := r.TryAcquire(f.ctx, key, time.Hour)
			if name == "majority" {
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
			} else {
				require.NoError(t, err)
				require.NoError(t, f.release(l))
			}
			acquired := f.round("acquire", key)
			for _, i := range delayed {
				if errors.Is(acquired.Nodes[i].Err, quorum.ErrNotSent) {
					require.Equal(t, "minority", name, "a release takes back what was not sent")
					continue
				}
				f.eventually("the SET has arrived", func() bool { return f.calls(i, "set") > before[i] })
			}
			f.gone(key)
			for _, i := range delayed {
				assert.LessOrEqual(t, f.calls(i, "set"), before[i]+1)
			}
		})
	}
}

// Connections that break while they are idle cost at most the next round's vote on that node, and
// never a lock.
func TestRealAcquireOverBrokenConnections(t *testing.T) {
	f := startFleet(t, 5)
	links := f.links()
	r := f.redlockOf(f.through(links), redlock.Config{})
	f.cycle(r, "warm up")
	l := f.hold(r, key)
	for range 5 {
		links[1].Break()
		links[2].Break()
		require.NoError(t, l.Extend(f.ctx, time.Hour))
	}
	for _, link := range links {
		link.Break()
	}
	f.eventually("it extends again", func() bool { return l.Extend(f.ctx, time.Hour) == nil })
	require.NoError(t, f.release(l))
	f.gone(key)
}
