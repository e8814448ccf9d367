package trylock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
)

const (
	key = virtual.Key
	ttl = virtual.TTL
)

var ctx = context.Background()

// counted counts what Acquire asks of a Redlock.
type counted struct {
	*redlock.Redlock
	attempts, inspections int
	before                func(attempt int) // an attempt, from 1 on; may be nil
}

func (c *counted) TryAcquire(ctx context.Context, key string, ttl time.Duration) (*redlock.Lock, error) {
	c.attempts++
	if c.before != nil {
		c.before(c.attempts)
	}
	return c.Redlock.TryAcquire(ctx, key, ttl)
}

func (c *counted) Inspect(ctx context.Context, key string) (*redlock.Inspection, error) {
	c.inspections++
	return c.Redlock.Inspect(ctx, key)
}

// split stores another value under the key on each master, for ever if expiry is zero.
func split(b *virtual.Bed, expiry time.Duration) {
	for i := range b.Masters.Len() {
		require.NoError(b, b.Redis(i).Set(key, fmt.Sprintf("00000000-0000-4000-8000-%012d", i)))
		if expiry > 0 {
			b.Redis(i).SetTTL(key, expiry)
		}
	}
}

// Requests of many instances reach the masters in different orders, so that most rounds split the
// votes. Exactly one instance has the lock nevertheless.
func TestAcquireByOneOfManyAtOneInstant(t *testing.T) {
	const instances = 40
	for nodes, rounds := range map[int]int{3: 10, 5: 50} {
		if testing.Short() {
			rounds /= 5
		}
		virtual.Run(t, nodes, redlock.Config{}, func(b *virtual.Bed) {
			var all []*counted
			for _, p := range b.ReadyParties(instances, redlock.Config{}) {
				all = append(all, &counted{Redlock: p.Redlock})
				for _, path := range p.Paths {
					path.Shape(func(faultlink.Direction) (time.Duration, bool) { return rand.N(2 * time.Millisecond), false })
				}
			}
			for round := range rounds {
				var mu sync.Mutex
				var got []*redlock.Lock
				var running sync.WaitGroup
				for _, locks := range all {
					running.Go(func() {
						l, err := trylock.Acquire(ctx, locks, key, time.Minute)
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							got = append(got, l)
						} else {
							assert.ErrorIs(b, err, redlock.ErrHeld)
						}
					})
				}
				running.Wait()
				require.Len(b, got, 1, "round %d", round)
				b.Release(got[0])
				time.Sleep(time.Second)
			}
			attempts := 0
			for _, locks := range all {
				attempts += locks.attempts
			}
			assert.Greater(b, attempts, rounds*instances, "no round has split the votes")
		})
	}
}

func TestAcquireDoesNotWaitForAHolder(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Take(b.NewRedlock(redlock.Config{}))
		b.Settle()
		locks := &counted{Redlock: b.Redlock}
		var err error
		assert.Zero(b, virtual.Took(func() { _, err = trylock.Acquire(ctx, locks, key, ttl) }))
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, []int{1, 1}, []int{locks.attempts, locks.inspections})
	})
}

func TestAcquireOfAKeyThatIsNoLock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		for i := range 3 {
			b.Redis(i).HSet(key, "field", "value")
		}
		locks := &counted{Redlock: b.Redlock}
		var err error
		assert.Zero(b, virtual.Took(func() { _, err = trylock.Acquire(ctx, locks, key, ttl) }))
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, []int{1, 1}, []int{locks.attempts, locks.inspections})
	})
}

func TestAcquireWithoutAQuorumFailsAtOnce(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(0, 1)
		locks := &counted{Redlock: b.Redlock}
		_, err := trylock.Acquire(ctx, locks, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.Equal(b, []int{1, 0}, []int{locks.attempts, locks.inspections})
	})
}

// Keys that dead clients have left expire.
func TestAcquireAfterASplitHasEnded(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		split(b, 100*time.Millisecond)
		l, err := trylock.Acquire(ctx, b.Redlock, key, ttl)
		require.NoError(b, err)
		b.Release(l)
	})
}

// One master has a dead client's key, and another one is down. Both could be of one lock.
func TestAcquireGoesOnWhileAHolderIsUnknown(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(0)
		b.Steal(key, 50*time.Millisecond, 1)
		l, err := trylock.Acquire(ctx, b.Redlock, key, ttl)
		require.NoError(b, err)
		b.Release(l)
	})
}

func TestAcquireGivesUpOnASplitThatLasts(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		split(b, 0)
		locks := &counted{Redlock: b.Redlock}
		var err error
		took := virtual.Took(func() { _, err = trylock.Acquire(ctx, locks, key, ttl) })
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Less(b, took, 1300*time.Millisecond)
		assert.Equal(b, []int{9, 8}, []int{locks.attempts, locks.inspections})
	})
}

var errOver = errors.New("over")

// ctx ends in a pause, in an attempt, and in an inspection.
func TestAcquireEndsWithItsContext(t *testing.T) {
	for name, hang := range map[string]func(*virtual.Bed, int){
		"in a pause": func(*virtual.Bed, int) {},
		"in an attempt": func(b *virtual.Bed, attempt int) {
			if attempt == 2 {
				b.Stall(0, 1, 2)
			}
		},
		"in an inspection": func(b *virtual.Bed, attempt int) {
			if attempt == 2 {
				b.Delay(8*time.Millisecond, 0)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
				b.Warm()
				split(b, 0)
				c, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				time.AfterFunc(14*time.Millisecond, func() { cancel(errOver) })
				locks := &counted{Redlock: b.Redlock, before: func(attempt int) { hang(b, attempt) }}
				var err error
				took := virtual.Took(func() { _, err = trylock.Acquire(c, locks, key, ttl) })
				assert.ErrorIs(b, err, redlock.ErrHeld)
				assert.ErrorIs(b, err, errOver)
				assert.Less(b, took, 50*time.Millisecond)
				b.Delay(0, 0)
				b.Resume(0, 1, 2)
			})
		})
	}
}

// The last complete attempt decides: it has found too few masters.
func TestAcquireThatLosesItsQuorum(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		split(b, 0)
		locks := &counted{Redlock: b.Redlock, before: func(attempt int) {
			if attempt == 3 {
				b.Masters.Kill(0, 1)
			}
		}}
		_, err := trylock.Acquire(ctx, locks, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrHeld)
		assert.Less(b, locks.attempts, 9)
	})
}

func TestAcquireAfterClose(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		r := b.NewRedlock(redlock.Config{})
		split(b, 0)
		locks := &counted{Redlock: r, before: func(attempt int) {
			if attempt == 2 {
				require.NoError(b, r.Close())
			}
		}}
		_, err := trylock.Acquire(ctx, locks, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrClosed)
		assert.Equal(b, 2, locks.attempts)
	})
}

func TestAcquireRefusesWhatTryAcquireRefuses(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var noContext context.Context
		for want, f := range map[string]func() (*redlock.Lock, error){
			"ctx is nil":   func() (*redlock.Lock, error) { return trylock.Acquire(noContext, b.Redlock, key, ttl) },
			"key is empty": func() (*redlock.Lock, error) { return trylock.Acquire(ctx, b.Redlock, "", ttl) },
			"ttl 1ms":      func() (*redlock.Lock, error) { return trylock.Acquire(ctx, b.Redlock, key, time.Millisecond) },
		} {
			_, err := f()
			assert.ErrorContains(b, err, want)
		}
	})
}

// Others wait for the key, so one of them gets it, though nobody has it yet.
func TestAcquireWhereOthersWait(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder, waiter := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, ttl)
		w := waiter.Wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		waiter.Hang()
		b.Release(l)
		c := &counted{Redlock: b.NewRedlock(redlock.Config{Fair: true})}
		_, err := trylock.Acquire(ctx, c, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, 1, c.attempts)
		waiter.Revive()
		b.Release(w.Hold())
	})
}
