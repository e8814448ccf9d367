package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
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
			virtually(t, 5, ahead, func(b *bed) {
				high := b.take(b.lock)
				b.release(high)
				if dead {
					for i := range 5 {
						b.redis(i).ZAdd("redlock:queue:{"+key+"}", float64(time.Now().UnixMicro()), "nobody "+key)
						require.NoError(b, b.redis(i).Set("redlock:queued:{"+key+"}", "1"))
					}
				}
				r := b.client(behind)
				l, err := r.TryAcquire(ctx, key, ttl)
				require.NoError(b, err)
				assert.Equal(b, high.FencingToken()+1, l.FencingToken())
				b.release(l)
				l, err = b.client(behind).Acquire(ctx, key, ttl)
				require.NoError(b, err)
				assert.Equal(b, high.FencingToken()+2, l.FencingToken())
				b.release(l)
				b.noQueues()
			})
		})
	}
}

// With a waiter ahead, a newcomer whose clock is below the fence is refused as any other
// newcomer, and wakes the waiter.
func TestAcquireFairBelowTheFenceDoesNotOvertake(t *testing.T) {
	virtually(t, 3, redlock.Config{Fencing: true, Fair: true}, func(b *bed) {
		b.release(b.take(b.lock))
		first := b.ready(redlock.Config{Fencing: true, Fair: true, Clock: clock.Skewed(clock.System(), 1, -2*time.Hour)})
		held := b.take(b.lock)
		b.settle()
		waits := first.wait(key, ttl)
		time.Sleep(100 * time.Millisecond)
		for i := range 3 {
			b.redis(i).Del(key) // without a wake-up
		}
		r := b.client(redlock.Config{Fencing: true, Fair: true, Clock: clock.Skewed(clock.System(), 1, -time.Hour)})
		_, err := r.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, "has others waiting for it")
		l := waits.hold()
		assert.Greater(b, l.FencingToken(), held.FencingToken())
		b.release(l)
		_ = held.Release(ctx)
		b.noQueues()
	})
}
