package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

var reentrant = redlock.Config{Reentrant: true}

// acquisitions are the ways to acquire Key under a context. Each returns the lock to use.
var acquisitions = map[string]func(r *redlock.Redlock, ctx context.Context, use func(*redlock.Lock)) error{
	"TryAcquire": func(r *redlock.Redlock, ctx context.Context, use func(*redlock.Lock)) error {
		l, err := r.TryAcquire(ctx, key, ttl)
		if err != nil {
			return err
		}
		use(l)
		return l.Release(ctx)
	},
	"Acquire": func(r *redlock.Redlock, ctx context.Context, use func(*redlock.Lock)) error {
		l, err := r.Acquire(ctx, key, ttl)
		if err != nil {
			return err
		}
		use(l)
		return l.Release(ctx)
	},
	"Do": func(r *redlock.Redlock, ctx context.Context, use func(*redlock.Lock)) error {
		return r.Do(ctx, key, ttl, func(ctx context.Context) error {
			l, ok := redlock.FromContext(ctx, key)
			if !ok {
				return errors.New("the context carries no lock")
			}
			use(l)
			return nil
		})
	},
}

// notAsked asserts that no node was asked since the last call.
func notAsked(b *virtual.Bed) {
	b.Helper()
	b.Settle()
	for i := range b.Masters.Len() {
		assert.Empty(b, b.Commands(i))
	}
}

// forget forgets which commands the nodes have got.
func forget(b *virtual.Bed) {
	b.Settle()
	for i := range b.Masters.Len() {
		b.Commands(i)
	}
}

func TestAcquireDoesNotWaitForTheCallersOwnLock(t *testing.T) {
	for name, acquire := range acquisitions {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			l := b.Acquire(key, ttl)
			forget(b)
			start := time.Now()
			for _, carries := range []context.Context{l.Context(), context.WithoutCancel(l.Context())} {
				err := acquire(b.Redlock, carries, func(*redlock.Lock) { t.Error(name, "has a lock") })
				assert.ErrorIs(t, err, redlock.ErrReentrant)
				assert.NotErrorIs(t, err, redlock.ErrHeld)
				assert.EqualError(t, err, `redlock: acquire "orders": the context already holds this key`)
			}
			assert.Equal(t, start, time.Now())
			notAsked(b)
			assert.True(t, l.Valid())

			_, err := b.Redlock.TryAcquire(ctx, key, ttl)
			assert.ErrorIs(t, err, redlock.ErrHeld, "a context without the lock")
			other, err := b.Redlock.TryAcquire(l.Context(), "other", ttl)
			require.NoError(t, err, "another key")
			require.NoError(t, other.Release(ctx))
		})
	}
}

// Two Redlocks of one process are two owners.
func TestAcquireUnderALockOfAnotherRedlock(t *testing.T) {
	for _, cfg := range []redlock.Config{{}, reentrant} {
		virtual.Run(t, 3, cfg, func(b *virtual.Bed) {
			other := b.NewRedlock(redlock.Config{KeyPrefix: "other:", Reentrant: cfg.Reentrant})
			sameKeys := b.NewRedlock(cfg)
			ours := b.Acquire(key, ttl)

			_, err := sameKeys.TryAcquire(ours.Context(), key, ttl)
			assert.ErrorIs(t, err, redlock.ErrHeld)
			theirs, err := other.TryAcquire(ours.Context(), key, ttl)
			require.NoError(t, err)
			assert.NotEqual(t, ours.Value(), theirs.Value())

			// Theirs is the inner one, and does not hide ours.
			found, ok := redlock.FromContext(theirs.Context(), key)
			require.True(t, ok)
			assert.Same(t, theirs, found)
			forget(b)
			nested, err := b.Redlock.TryAcquire(theirs.Context(), key, ttl)
			if cfg.Reentrant {
				require.NoError(t, err)
				assert.Equal(t, ours.Value(), nested.Value())
				assert.NoError(t, nested.Release(ctx))
			} else {
				assert.ErrorIs(t, err, redlock.ErrReentrant)
			}
			notAsked(b)
			require.NoError(t, theirs.Release(ctx))
			require.NoError(t, ours.Release(ctx))
		})
	}
}

func TestNestedLockSharesTheOuterOne(t *testing.T) {
	for name, acquire := range acquisitions {
		virtual.Run(t, 5, redlock.Config{Reentrant: true, Fencing: true, Fair: true}, func(b *virtual.Bed) {
			outer := b.Acquire(key, ttl)
			waiter, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() { _, _ = b.NewRedlock(redlock.Config{Fencing: true}).Acquire(waiter, key, ttl) }()
			time.Sleep(10 * time.Millisecond)
			forget(b)

			used := false
			require.NoError(t, acquire(b.Redlock, outer.Context(), func(nested *redlock.Lock) {
				used = true
				assert.NotSame(t, outer, nested)
				assert.Equal(t, key, nested.Key())
				assert.Equal(t, outer.Value(), nested.Value())
				assert.Equal(t, outer.FencingToken(), nested.FencingToken())
				assert.Positive(t, nested.FencingToken())
				assert.Equal(t, outer.Until(), nested.Until())
				assert.True(t, nested.Valid())
				require.NoError(t, nested.Context().Err())
			}), name)
			assert.True(t, used)
			notAsked(b)
			assert.True(t, outer.Valid())
			require.NoError(t, outer.Context().Err())
			assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key))
			cancel()
			b.Settle()
			require.NoError(t, outer.Release(ctx))
			b.Settle()
			assert.Empty(t, b.Has(key))
		})
	}
}

func TestNestedReleaseEndsTheNestedLockAlone(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		type name struct{}
		outer := b.Acquire(key, ttl)
		middle, err := b.Redlock.Acquire(context.WithValue(outer.Context(), name{}, "v"), key, ttl)
		require.NoError(t, err)
		inner, err := b.Redlock.TryAcquire(middle.Context(), key, ttl)
		require.NoError(t, err)
		assert.Equal(t, "v", inner.Context().Value(name{}))
		found, _ := redlock.FromContext(inner.Context(), key)
		assert.Same(t, inner, found)
		forget(b)

		require.NoError(t, middle.Release(ctx))
		assert.Equal(t, redlock.ErrReleased, context.Cause(middle.Context()))
		assert.False(t, middle.Valid())
		assert.ErrorIs(t, middle.Extend(ctx, time.Hour), redlock.ErrReleased)
		assert.EqualError(t, middle.Release(ctx), `redlock: release "orders": released`)
		assert.True(t, inner.Valid(), "it has joined the outermost lock")
		require.NoError(t, inner.Context().Err())
		require.NoError(t, inner.Release(ctx))
		assert.True(t, outer.Valid())
		notAsked(b)

		// A released lock that the context carries does not hide the live one around it.
		again, err := b.Redlock.TryAcquire(context.WithoutCancel(inner.Context()), key, ttl)
		require.NoError(t, err)
		assert.Equal(t, outer.Value(), again.Value())
		require.NoError(t, outer.Release(ctx))
	})
}

// A nested lock cannot promise to keep the key taken, as the outer one goes on with it.
func TestReleaseAfterAndDetachOfANestedLockAreErrors(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		outer := b.Acquire(key, ttl)
		nested, err := b.Redlock.TryAcquire(outer.Context(), key, ttl)
		require.NoError(t, err)
		forget(b)
		err = nested.ReleaseAfter(ctx, time.Minute)
		assert.EqualError(t, err, `redlock: release after "orders": the lock is nested in another, which alone can do this`)
		_, err = nested.Detach()
		assert.EqualError(t, err, `redlock: detach "orders": the lock is nested in another, which alone can do this`)
		assert.True(t, nested.Valid())
		notAsked(b)
		require.NoError(t, outer.ReleaseAfter(ctx, time.Minute))
		assert.Equal(t, redlock.ErrReleased, context.Cause(nested.Context()))
		assert.ErrorIs(t, nested.Release(ctx), redlock.ErrReleased)
		b.Settle()
		assert.Equal(t, []int{0, 1, 2}, b.Has(key))
	})
}

// Two goroutines under one Do are both in a nested Do at the same time.
func TestNestedLocksOfSiblings(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		require.NoError(t, b.Redlock.Do(ctx, key, ttl, func(ctx context.Context) error {
			var both, done sync.WaitGroup
			both.Add(2)
			for range 2 {
				done.Go(func() {
					assert.NoError(t, b.Redlock.Do(ctx, key, ttl, func(context.Context) error {
						both.Done()
						both.Wait()
						return nil
					}))
				})
			}
			done.Wait()
			return ctx.Err()
		}))
	})
}

func TestNestedLocksAreSafeForConcurrentUse(t *testing.T) {
	virtual.Run(t, 3, reentrant, func(b *virtual.Bed) {
		outer := b.Acquire(key, time.Second)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				nested, err := b.Redlock.TryAcquire(outer.Context(), key, time.Duration(1+i%3)*time.Second)
				if err != nil {
					return // the outer lock was released before
				}
				nested.KeepAlive()
				_ = nested.Until()
				_ = nested.Context().Err()
				_ = nested.Extend(ctx, time.Second)
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				if err := nested.Release(ctx); err != nil {
					assert.ErrorIs(t, err, redlock.ErrReleased)
					assert.False(t, outer.Valid())
				}
			})
		}
		time.Sleep(2 * time.Second)
		require.NoError(t, outer.Release(ctx))
		wg.Wait()
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// ends are the ways in which the outer lock can end, each with the cause of its context.
var ends = []struct {
	name  string
	end   func(b *virtual.Bed, outer *redlock.Lock)
	cause error
}{
	{"release", func(b *virtual.Bed, outer *redlock.Lock) { require.NoError(b, outer.Release(ctx)) }, redlock.ErrReleased},
	{"loss", func(b *virtual.Bed, outer *redlock.Lock) {
		b.Steal(key, time.Hour, 0, 1, 2)
		require.ErrorIs(b, outer.Extend(ctx, ttl), redlock.ErrNotHeld)
	}, redlock.ErrNotHeld},
	{"expiry", func(_ *virtual.Bed, outer *redlock.Lock) {
		time.Sleep(time.Until(outer.Until()))
		outer.Valid() // no goroutine of the Redlock has noticed
	}, redlock.ErrExpired},
	{"close", func(b *virtual.Bed, _ *redlock.Lock) { require.NoError(b, b.Redlock.Close()) }, redlock.ErrClosed},
}

func TestNestedLockEndsWithTheOuter(t *testing.T) {
	for _, how := range ends {
		virtual.Run(t, 3, redlock.Config{Reentrant: true, Clock: late.Clock}, func(b *virtual.Bed) {
			outer := b.Acquire(key, ttl)
			first, err := b.Redlock.TryAcquire(outer.Context(), key, ttl)
			require.NoError(t, err)
			second, err := b.Redlock.TryAcquire(first.Context(), key, ttl)
			require.NoError(t, err)
			first.KeepAlive()
			carries := context.WithoutCancel(second.Context())
			how.end(b, outer)
			for _, nested := range []*redlock.Lock{first, second} {
				assert.Equal(t, how.cause, context.Cause(nested.Context()), how.name)
				assert.False(t, nested.Valid())
				assert.ErrorIs(t, nested.Extend(ctx, ttl), how.cause)
				err := nested.Release(ctx)
				assert.ErrorIs(t, err, how.cause)
				assert.ErrorContains(t, err, `release "orders"`)
				assert.ErrorIs(t, nested.Release(ctx), redlock.ErrReleased)
			}
			b.Settle()
			_, ok := redlock.FromContext(carries, key)
			assert.False(t, ok)
			if how.cause == redlock.ErrClosed {
				_, err := b.Redlock.TryAcquire(carries, key, ttl)
				assert.ErrorIs(t, err, redlock.ErrClosed)
				return
			}
			for i := range 3 {
				b.Redis(i).Del(key)
			}
			again, err := b.Redlock.TryAcquire(carries, key, ttl)
			require.NoError(t, err, "an acquisition like any other")
			assert.NotEqual(t, outer.Value(), again.Value())
			b.Settle()
			assert.Equal(t, []int{0, 1, 2}, b.Has(key))
			require.NoError(t, again.Release(ctx))
		})
	}
}

func TestDoNestedNeverReturnsNilAfterALoss(t *testing.T) {
	mine := errors.New("mine")
	for _, how := range ends {
		for _, returns := range []error{nil, mine} {
			virtual.Run(t, 3, redlock.Config{Reentrant: true, Clock: late.Clock}, func(b *virtual.Bed) {
				outer := b.Acquire(key, ttl)
				err := b.Redlock.Do(outer.Context(), key, ttl, func(ctx context.Context) error {
					how.end(b, outer)
					assert.Equal(t, how.cause, context.Cause(ctx), how.name)
					return returns
				})
				require.ErrorIs(t, err, how.cause)
				if returns != nil {
					assert.ErrorIs(t, err, mine)
				}
				var failed *redlock.QuorumError
				if errors.As(err, &failed) {
					assert.Equal(t, "release", failed.Op)
				}
			})
		}
	}
}
