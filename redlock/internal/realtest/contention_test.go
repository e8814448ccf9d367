package realtest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// Case 24: exclusion is asserted. 16 Redlocks, each with its own clients and two goroutines,
// contend for one key on five masters.
func TestRealAcquireUnderContention(t *testing.T) {
	const redlocks, goroutines, times = 16, 2, 10
	f := startFleet(t, 5)
	var shared resource
	done := make(chan error, redlocks*goroutines)
	for range redlocks {
		r := f.redlock(redlock.Config{})
		for range goroutines {
			go func() { done <- shared.use(f, r, times) }()
		}
	}
	for range redlocks * goroutines {
		require.NoError(t, <-done)
	}
	assert.Equal(t, redlocks*goroutines*times, shared.uses)
	f.gone(key)
}

// Cases 9 and 24: two of the five masters are killed during the contention. They stay dead, so no
// master forgets: the three that are left are in every later quorum.
func TestRealAcquireUnderContentionAndCrashes(t *testing.T) {
	const redlocks, times = 4, 25
	f := startFleet(t, 5)
	var shared resource
	done := make(chan error, redlocks)
	for range redlocks {
		r := f.redlock(redlock.Config{})
		go func() { done <- shared.use(f, r, times) }()
	}
	for _, i := range []int{0, 4} {
		f.eventually("it has had some", func() bool { return f.calls(i, "set") > 10 })
		f.kill(i)
	}
	for range redlocks {
		require.NoError(t, <-done)
	}
	assert.Equal(t, redlocks*times, shared.uses)
	f.gone(key, 1, 2, 3)
}
