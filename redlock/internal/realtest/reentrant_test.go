package realtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// While two of five masters are down, nested locks ask no node, a longer ttl extends, and only the
// release of the outer lock lets another client in.
func TestRealNestedLockWithTwoOfFiveKilled(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{Reentrant: true, Fencing: true})
	other := f.redlock(redlock.Config{Fencing: true})
	f.kill(1, 3)
	refused := func() {
		_, err := other.TryAcquire(f.ctx, key, ttl)
		require.ErrorIs(t, err, redlock.ErrHeld)
	}

	outer := f.acquire(r, key, time.Minute)
	nested, err := r.Acquire(outer.Context(), key, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, outer.FencingToken(), nested.FencingToken())
	require.NoError(t, r.Do(nested.Context(), key, time.Minute, func(ctx context.Context) error {
		refused()
		return ctx.Err()
	}))
	require.NoError(t, f.release(nested))
	refused()
	f.onAll(key, outer, 0, 2, 4)
	assert.Empty(t, f.rounds.of("extend", key))
	assert.Empty(t, f.rounds.of("release", key))

	longer, err := r.TryAcquire(outer.Context(), key, time.Hour)
	require.NoError(t, err)
	assert.Equal(t, longer.Until(), outer.Until())
	for _, i := range []int{0, 2, 4} {
		f.eventually("the key lives longer", func() bool { return f.admin[i].PTTL(f.ctx, key).Val() > time.Minute })
	}
	require.NoError(t, f.release(outer))
	assert.ErrorIs(t, f.release(longer), redlock.ErrReleased)
	f.gone(key, 0, 2, 4)
	theirs := f.acquire(other, key, ttl)
	assert.Greater(t, theirs.FencingToken(), outer.FencingToken())
	require.NoError(t, f.release(theirs))
}

// The masters lose the key while a nested Do runs. Its renewal finds that, for the outer lock too.
func TestRealNestedDoReportsALoss(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{Reentrant: true})
	outer := f.acquire(r, key, time.Hour)
	err := r.Do(outer.Context(), key, 600*time.Millisecond, func(ctx context.Context) error {
		for _, a := range f.admin {
			require.NoError(t, a.FlushAll(f.ctx).Err())
		}
		<-ctx.Done()
		assert.Equal(t, redlock.ErrNotHeld, context.Cause(ctx))
		return nil
	})
	require.ErrorIs(t, err, redlock.ErrNotHeld)
	assert.Equal(t, redlock.ErrNotHeld, context.Cause(outer.Context()))
	assert.ErrorIs(t, f.release(outer), redlock.ErrNotHeld)
}
