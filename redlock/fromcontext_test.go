package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

func TestFromContextInDo(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true, KeyPrefix: "p:"}, func(b *virtual.Bed) {
		type name struct{}
		caller, cancel := context.WithTimeout(context.WithValue(ctx, name{}, "value"), time.Minute)
		defer cancel()
		var inside context.Context
		require.NoError(t, b.Redlock.Do(caller, key, time.Second, func(ctx context.Context) error {
			inside = context.WithoutCancel(ctx)
			l, ok := redlock.FromContext(ctx, key)
			require.True(t, ok)
			assert.Equal(t, key, l.Key())
			assert.Positive(t, l.FencingToken())
			assert.True(t, l.Valid())
			_, ok = redlock.FromContext(ctx, "p:"+key)
			assert.False(t, ok, "the key is the caller's")
			_, ok = redlock.FromContext(caller, key)
			assert.False(t, ok)

			want, _ := caller.Deadline()
			deadline, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, want, deadline)
			assert.Equal(t, "value", ctx.Value(name{}))
			return nil
		}))
		_, ok := redlock.FromContext(inside, key)
		assert.False(t, ok, "it was released")
	})
}

func TestFromContextFindsEachOfSeveralKeys(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		keys := []string{"a", "b", "c"}
		require.NoError(t, b.Redlock.Do(ctx, "a", time.Second, func(ctx context.Context) error {
			l, err := b.Redlock.TryAcquire(ctx, "b", time.Second)
			require.NoError(t, err)
			err = b.Redlock.Do(l.Context(), "c", time.Second, func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				for _, k := range keys {
					found, ok := redlock.FromContext(ctx, k)
					require.True(t, ok, k)
					assert.Equal(t, k, found.Key())
				}
				found, _ := redlock.FromContext(ctx, "b")
				assert.Same(t, l, found)
				_, ok := redlock.FromContext(l.Context(), "c")
				assert.False(t, ok)
				return nil
			})
			require.NoError(t, l.Release(ctx))
			_, ok := redlock.FromContext(l.Context(), "b")
			assert.False(t, ok)
			_, ok = redlock.FromContext(l.Context(), "a")
			assert.True(t, ok)
			return err
		}))
	})
}

// Two Redlocks have locks of one name: the code that the inner one was acquired for must
// never get the token of the other.
func TestFromContextTakesTheInnerOfTwoLocksOnAKey(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{KeyPrefix: "other:"})
		require.NoError(t, b.Redlock.Do(ctx, key, time.Second, func(outer context.Context) error {
			l, err := other.TryAcquire(outer, key, time.Second)
			require.NoError(t, err)
			found, ok := redlock.FromContext(l.Context(), key)
			require.True(t, ok)
			assert.Same(t, l, found)
			require.NoError(t, l.Release(ctx))
			_, ok = redlock.FromContext(l.Context(), key)
			assert.False(t, ok, "the outer one is not a substitute")
			_, ok = redlock.FromContext(outer, key)
			assert.True(t, ok)
			return nil
		}))
	})
}

func TestFromContextFindsNoLockFromUntilOn(t *testing.T) {
	virtual.Run(t, 3, late, func(b *virtual.Bed) {
		l := b.Acquire(key, time.Second)
		time.Sleep(time.Until(l.Until()) - 1)
		found, ok := redlock.FromContext(l.Context(), key)
		require.True(t, ok)
		assert.Same(t, l, found)
		time.Sleep(time.Nanosecond)
		_, ok = redlock.FromContext(l.Context(), key)
		assert.False(t, ok)
		var none context.Context // a caller's mistake
		_, ok = redlock.FromContext(none, key)
		assert.False(t, ok)
		_, ok = redlock.FromContext(ctx, key)
		assert.False(t, ok)
	})
}
