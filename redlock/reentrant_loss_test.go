package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

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
