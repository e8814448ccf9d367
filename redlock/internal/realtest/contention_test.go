package realtest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/redlock"
)

// resource is protected by a lock and has no mutex. Its use fails if another holder is there.
type resource struct{ holders, uses int }

// use acquires the lock and uses the resource, so many times.
func (r *resource) use(f *fleet, lock *redlock.Redlock, times int) error {
	for range times {
		l, err := lock.Acquire(f.ctx, key, time.Minute)
		if err != nil {
			return err
		}
		r.holders++
		r.uses++
		if r.holders != 1 {
			return fmt.Errorf("%d holders", r.holders)
		}
		r.holders--
		// Nodes that were killed meanwhile may have been in this lock's quorum.
		if err := l.Release(f.ctx); err != nil && !errors.Is(err, redlock.ErrNoQuorum) {
			return err
		}
	}
	return nil
}

// contend makes each of the Redlocks use the resource so many times, all at once.
func (f *fleet) contend(shared *resource, times int, all ...*redlock.Redlock) *errgroup.Group {
	g := new(errgroup.Group)
	for _, r := range all {
		g.Go(func() error { return shared.use(f, r, times) })
	}
	return g
}

// Case 24: exclusion is asserted. 16 Redlocks, each with its own clients and two goroutines,
// contend for one key on five masters.
func TestRealAcquireUnderContention(t *testing.T) {
	f := startFleet(t, 5)
	var shared resource
	all := f.redlocks(16, redlock.Config{})
	require.NoError(t, f.contend(&shared, 10, slices.Concat(all, all)...).Wait())
	assert.Equal(t, 16*2*10, shared.uses)
	f.gone(key)
}

// Cases 9 and 24: two of the five masters are killed during the contention. They stay dead, so no
// master forgets: the three that are left are in every later quorum.
func TestRealAcquireUnderContentionAndCrashes(t *testing.T) {
	f := startFleet(t, 5)
	var shared resource
	g := f.contend(&shared, 25, f.redlocks(4, redlock.Config{})...)
	for _, i := range []int{0, 4} {
		f.eventually("it has had some", func() bool { return f.calls(i, "set") > 10 })
		f.kill(i)
	}
	require.NoError(t, g.Wait())
	assert.Equal(t, 4*25, shared.uses)
	f.gone(key, 1, 2, 3)
}
