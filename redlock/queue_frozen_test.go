package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// frozen has so many wait, who then freeze with connections that look alive, and returns
// the holder's lock.
func (b *bed) frozen(n int, cfg redlock.Config) *redlock.Lock {
	b.Helper()
	l := b.hold(b.ready(cfg), time.Hour)
	dead := b.crowd(n, cfg)
	b.line(dead, key, 5*time.Millisecond)
	for _, p := range dead {
		p.hang()
	}
	return l
}

// Whoever is behind one that has frozen need not wait for its own look: its node tells it
// that it is second, and it looks when the first one's second is over.
func TestAcquireBehindOneFrozenWaiter(t *testing.T) {
	for _, waited := range []time.Duration{100 * time.Millisecond, 3500 * time.Millisecond, 31 * time.Second} {
		virtually(t, 3, redlock.Config{}, func(b *bed) {
			l := b.frozen(1, redlock.Config{})
			w := b.ready(redlock.Config{}).wait(key, time.Hour)
			time.Sleep(waited)
			released := time.Now()
			b.release(l)
			b.release(w.hold())
			assert.GreaterOrEqual(b, w.got.Sub(released), time.Second, "after %v", waited)
			assert.Less(b, w.got.Sub(released), 1100*time.Millisecond, "after %v", waited)
		})
	}
}

// Behind many of them the first look finds that one did not come. The next four are woken
// together, and their second is the same one; then sixteen.
func TestAcquireBehindManyFrozenWaiters(t *testing.T) {
	crowded(t)
	for _, tc := range []struct {
		frozen int
		limit  time.Duration // from the first look on
	}{{2, time.Second}, {5, time.Second}, {16, 2 * time.Second}, {30, 3200 * time.Millisecond}} {
		t.Run(fmt.Sprint(tc.frozen), func(t *testing.T) {
			virtually(t, 3, redlock.Config{}, func(b *bed) {
				l := b.frozen(tc.frozen, redlock.Config{})
				w := b.ready(redlock.Config{}).wait(key, time.Hour)
				time.Sleep(4 * time.Second)
				b.release(l) // a second is over at the look after 7 s
				b.release(w.hold())
				assert.Less(b, w.got.Sub(w.begun), 7*time.Second+tc.limit+time.Second/2)
			})
		})
	}
}

// The living among those that are woken together have it in their order, and keep it.
func TestAcquireBetweenFrozenWaiters(t *testing.T) {
	crowded(t)
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		l := b.hold(b.ready(redlock.Config{}), time.Hour)
		parties := b.crowd(12, redlock.Config{})
		var queue []*waiter
		for i, p := range parties {
			w := b.line([]*party{p}, key, 5*time.Millisecond)[0]
			if i%3 == 2 {
				queue = append(queue, w)
			}
		}
		for i, p := range parties {
			if i%3 < 2 {
				p.hang()
			}
		}
		released := time.Now()
		assert.Equal(b, []int{0, 1, 2, 3}, order(b, l, queue))
		assert.Less(b, queue[3].got.Sub(released), 7*time.Second)
	})
}

// With Fair a newcomer is refused a free key for as long.
func TestTryAcquireBehindFrozenWaiters(t *testing.T) {
	crowded(t)
	fair := redlock.Config{Fair: true}
	virtually(t, 3, fair, func(b *bed) {
		l, p := b.frozen(16, fair), b.ready(fair)
		time.Sleep(4 * time.Second)
		released := time.Now()
		b.release(l)
		for {
			l, err := p.TryAcquire(ctx, key, time.Minute)
			if err == nil {
				b.release(l)
				break
			}
			require.ErrorIs(b, err, redlock.ErrHeld)
			time.Sleep(50 * time.Millisecond)
		}
		assert.Less(b, time.Since(released), 3*time.Second+time.Second/2, "one, four, sixteen")
	})
}

// One script removes a hundred of the dead at the most, and who has sent it goes on: the
// living behind them is woken as soon as they are gone.
func TestReleaseRemovesTheDeadInSteps(t *testing.T) {
	for name, free := range map[string]func(*bed, *party, *redlock.Lock){
		"release": func(b *bed, _ *party, l *redlock.Lock) { go func() { assert.NoError(b, l.Release(ctx)) }() },
		"force": func(b *bed, p *party, _ *redlock.Lock) {
			seen, err := p.Inspect(ctx, key)
			require.NoError(b, err)
			go func() {
				_, err := p.ForceRelease(ctx, seen)
				assert.NoError(b, err)
			}()
		},
		"a newcomer": func(b *bed, p *party, _ *redlock.Lock) {
			for i := range b.masters.Len() {
				b.redis(i).Del(key)
			}
			go func() {
				_, err := p.TryAcquire(ctx, key, time.Minute)
				assert.ErrorIs(b, err, redlock.ErrHeld)
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 3, redlock.Config{}, func(b *bed) {
				fair := redlock.Config{Fair: true}
				p := b.ready(fair)
				l := b.hold(b.ready(redlock.Config{}), time.Hour)
				w := b.ready(redlock.Config{}).wait(key, time.Hour)
				time.Sleep(100 * time.Millisecond)
				const dead = 1000
				most := 100
				if name == "a newcomer" { // its clean-up comes with the first step
					most = 200
				}
				for i := range b.masters.Len() {
					for n := range dead {
						_, err := b.redis(i).ZAdd("redlock:queue:{"+key+"}", 2e14+float64(n), fmt.Sprint("gone", n, " ", key))
						require.NoError(b, err)
					}
				}
				b.delay(5*time.Millisecond, 5*time.Millisecond)
				free(b, p, l)
				freed := time.Now()
				time.Sleep(time.Millisecond / 2)
				for before := dead + 1; !w.over(); {
					after := len(b.queued(0, key))
					require.LessOrEqual(b, before-after, most)
					require.Less(b, time.Since(freed), 500*time.Millisecond, "%d are left", after)
					before = after
					time.Sleep(time.Millisecond)
				}
				b.release(w.hold())
				assert.Less(b, w.got.Sub(freed), 200*time.Millisecond, "ten steps, a message and a try")
				b.noQueues()
			})
		})
	}
}
