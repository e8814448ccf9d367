package waitqueue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Case 19: redsync gives up after 32 tries although the context has time.
func TestAcquireWaitsUntilItIsItsTurn(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{})
		l := b.Acquire(key, time.Hour)
		time.AfterFunc(time.Minute, func() { _ = l.Release(ctx) })
		start := time.Now()
		got, err := other.Acquire(ctx, key, ttl)
		require.NoError(t, err)
		waited := time.Since(start)
		assert.GreaterOrEqual(t, waited, time.Minute)
		assert.LessOrEqual(t, waited, time.Minute+200*time.Millisecond, "a pause is 100 ms at most")
		require.NoError(t, got.Release(ctx))
	})
}

func TestAcquireDoesNotSleepPastTheHoldersTtl(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for range 20 {
			b.Steal(key, 40*time.Millisecond, 0, 1, 2, 3, 4)
			start := time.Now()
			l, err := b.Redlock.Acquire(ctx, key, ttl)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond)
			assert.LessOrEqual(t, time.Since(start), 42*time.Millisecond)
			require.NoError(t, l.Release(ctx))
			b.Settle()
		}
	})
}

// A waiter tries when as many nodes as a majority needs can be free.
func TestAcquireLooksWhenAMajorityCanBeFree(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, time.Hour, 0, 1)
		b.Steal(key, 30*time.Millisecond, 2)
		start := time.Now()
		l, err := b.Redlock.Acquire(ctx, key, ttl)
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), 100*time.Millisecond)
		require.NoError(t, l.Release(ctx))
	})
}

func TestAcquireCancelledReportsWhyItWaited(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, time.Hour, 0, 1, 2, 3, 4)
		c, cancel := context.WithTimeoutCause(ctx, 3*time.Second, errors.New("the boss is impatient"))
		defer cancel()
		var err error
		assert.Equal(t, 3*time.Second, virtual.Took(func() { _, err = b.Redlock.Acquire(c, key, ttl) }))
		require.ErrorIs(t, err, redlock.ErrHeld)
		assert.NotErrorIs(t, err, redlock.ErrNoQuorum)
		assert.ErrorIs(t, err, context.Cause(c))
		assert.Contains(t, fmt.Sprint(err), "the boss is impatient")

		// Case 18: rueidislock's waiter reports only "context deadline
		// exceeded" when Redis hangs.
		b.Stall(0, 1, 2)
		c, cancel = context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		assert.Equal(t, 3*time.Second, virtual.Took(func() { _, err = b.Redlock.Acquire(c, key, ttl) }))
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
	})
}

// Case 15: a retry is blocked by its own minority if the value is reused, or if the grants of an
// attempt are not deleted before the next.
func TestAcquireRetryIsNotBlockedByItsOwnMinority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, 250*time.Millisecond, 0, 1, 2)
		l, err := b.Redlock.Acquire(ctx, key, ttl)
		require.NoError(t, err)
		b.Settle()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key))
		values := map[string]bool{}
		sets := 0
		for _, c := range b.Masters.Master(4).Commands() {
			switch {
			case c[0] == "SET":
				sets++
				values[c[2]] = true
			case len(c) > 10 && c[6] == "try":
				sets++
				values[c[10]] = true
			}
		}
		assert.GreaterOrEqual(t, sets, 2, "it tried again")
		assert.Len(t, values, sets, "a fresh value for every attempt")
		require.NoError(t, l.Release(ctx))
	})
}

// Case 22: a failed acquisition leaves no state behind, neither in the client nor on the nodes.
func TestAcquireThatFailsLeavesNothing(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, 0, 0, 1, 2) // for ever
		for range 100 {
			_, err := b.Redlock.TryAcquire(ctx, key, time.Hour)
			require.ErrorIs(t, err, redlock.ErrHeld)
			b.Settle()
			assert.Equal(t, []int{0, 1, 2}, b.Has(key))
		}
		// Keys that were granted in vain before the decision are free on return.
		for i := range 3 {
			b.Masters.Master(i).Delay(5*time.Millisecond, 0)
		}
		for range 10 {
			_, err := b.Redlock.TryAcquire(ctx, key, time.Hour)
			require.ErrorIs(t, err, redlock.ErrHeld)
			assert.Equal(t, []int{0, 1, 2}, b.Has(key))
		}
		for i := range 3 {
			b.Masters.Master(i).Miniredis().Del(key)
		}
		require.NoError(t, b.Acquire(key, ttl).Release(ctx))
	})
}

func TestAcquireWaitsForAQuorumToComeBack(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(0, 1)
		time.AfterFunc(10*time.Second, func() { assert.NoError(t, b.Masters.Restart(0, 1)) })
		start := time.Now()
		l, err := b.Redlock.Acquire(ctx, key, ttl)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 10*time.Second)
		assert.LessOrEqual(t, time.Since(start), 12*time.Second)
		require.NoError(t, l.Release(ctx))
	})
}

func TestAcquireTakesTurnsWithContenders(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		// Case 24: all clients share one key, and a checker finds two holders.
		held, acquired := 0, 0
		done := make(chan error, 8)
		for range 8 {
			r := b.NewRedlock(redlock.Config{})
			go func() {
				for range 10 {
					l, err := r.Acquire(ctx, key, time.Minute)
					if err != nil {
						done <- err
						return
					}
					held++ // unguarded: the lock is the guard
					acquired++
					if held != 1 {
						done <- errors.New("two holders")
						return
					}
					time.Sleep(time.Millisecond)
					held--
					if err := l.Release(ctx); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 8 {
			require.NoError(t, <-done)
		}
		assert.Equal(t, 80, acquired)
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// The nodes are healthy and the key is held all the time. If the wait ends during an attempt, its
// reason is still that the key was held.
func TestAcquireCancelledInsideAnAttemptIsHeld(t *testing.T) {
	for d := range 40 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			b.Delay(10*time.Millisecond, 10*time.Millisecond)
			b.Steal(key, time.Hour, 0, 1, 2, 3, 4)
			c, cancel := context.WithTimeout(ctx, 500*time.Millisecond+time.Duration(d)*time.Millisecond)
			defer cancel()
			_, err := b.Redlock.Acquire(c, key, ttl)
			assert.ErrorIs(t, err, redlock.ErrHeld)
			assert.NotErrorIs(t, err, redlock.ErrNoQuorum)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// Locks that were acquired together are renewed together, and no other operation waits for all the
// renewals: six batches of a lane take longer than NodeTimeout here.
func TestAcquireDoesNotWaitForManyRenewalsAtOnce(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		const locks = 6000
		held := make([]*redlock.Lock, locks)
		for i := range held {
			held[i] = b.Acquire(fmt.Sprint("held ", i), time.Minute)
			held[i].KeepAlive()
		}
		b.Delay(20*time.Millisecond, 20*time.Millisecond)
		time.Sleep(20*time.Second + time.Millisecond) // all are due
		b.Settle()
		l := b.Acquire(key, ttl)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		for _, l := range held {
			require.Greater(t, time.Until(l.Until()), 50*time.Second, "renewed, also if it had to wait")
		}
	})
}
