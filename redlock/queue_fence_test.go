package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A free key that nobody waits for is granted to a client whose clock is below the fence:
// the node says that the token is too low, and the client proposes a higher one. Each
// kind of caller is a newcomer to the queue at its first attempt.
func TestAcquireFairWithAClockBelowTheFence(t *testing.T) {
	behind := redlock.Config{Fencing: true, Fair: true, Clock: clock.Skewed(clock.System(), 1, -time.Hour)}
	ahead := redlock.Config{Fencing: true, Fair: true}
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("behind a dead waiter %t", dead), func(t *testing.T) {
			virtual.Run(t, 5, ahead, func(b *virtual.Bed) {
				high := b.Take(b.Redlock)
				b.Release(high)
				if dead {
					for i := range 5 {
						b.Redis(i).ZAdd("redlock:queue:{"+key+"}", float64(time.Now().UnixMicro()), "nobody "+key)
						require.NoError(b, b.Redis(i).Set("redlock:queued:{"+key+"}", "1"))
					}
				}
				r := b.NewRedlock(behind)
				l, err := r.TryAcquire(ctx, key, ttl)
				require.NoError(b, err)
				assert.Equal(b, high.FencingToken()+1, l.FencingToken())
				b.Release(l)
				l, err = b.NewRedlock(behind).Acquire(ctx, key, ttl)
				require.NoError(b, err)
				assert.Equal(b, high.FencingToken()+2, l.FencingToken())
				b.Release(l)
				b.NoQueues()
			})
		})
	}
}

// With a waiter ahead, a newcomer whose clock is below the fence is refused as any other
// newcomer, and wakes the waiter.
func TestAcquireFairBelowTheFenceDoesNotOvertake(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true, Fair: true}, func(b *virtual.Bed) {
		b.Release(b.Take(b.Redlock))
		first := b.ReadyParty(redlock.Config{Fencing: true, Fair: true, Clock: clock.Skewed(clock.System(), 1, -2*time.Hour)})
		held := b.Take(b.Redlock)
		b.Settle()
		waits := first.Wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		for i := range 3 {
			b.Redis(i).Del(key) // without a wake-up
		}
		r := b.NewRedlock(redlock.Config{Fencing: true, Fair: true, Clock: clock.Skewed(clock.System(), 1, -time.Hour)})
		_, err := r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, "has others waiting for it")
		l := waits.Hold()
		assert.Greater(b, l.FencingToken(), held.FencingToken())
		b.Release(l)
		_ = held.Release(ctx)
		b.NoQueues()
	})
}
