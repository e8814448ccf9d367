package waitqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// frozenWaiters starts n waiters, which then freeze while their connections look alive. It returns
// the holder's lock.
func frozenWaiters(b *virtual.Bed, n int, cfg redlock.Config) *redlock.Lock {
	b.Helper()
	l := b.Hold(b.ReadyParty(cfg), time.Hour)
	dead := b.ReadyParties(n, cfg)
	b.WaitInTurn(dead, key, 5*time.Millisecond)
	for _, p := range dead {
		p.Hang()
	}
	return l
}

// A waiter behind a frozen one need not wait for its own next look. Its node reports that it is
// second, and it looks when the first one's second is over.
func TestAcquireBehindOneFrozenWaiter(t *testing.T) {
	for _, waited := range []time.Duration{100 * time.Millisecond, 3500 * time.Millisecond, 31 * time.Second} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			l := frozenWaiters(b, 1, redlock.Config{})
			w := b.ReadyParty(redlock.Config{}).Wait(key, time.Hour)
			time.Sleep(waited)
			released := time.Now()
			b.Release(l)
			b.Release(w.Hold())
			assert.GreaterOrEqual(b, w.Got.Sub(released), time.Second, "after %v", waited)
			assert.Less(b, w.Got.Sub(released), 1100*time.Millisecond, "after %v", waited)
		})
	}
}

// If many waiters are frozen, the first look finds that one did not come. The next four are woken
// together, and have the same second; then sixteen.
func TestAcquireBehindManyFrozenWaiters(t *testing.T) {
	virtual.Crowded(t)
	for _, tc := range []struct {
		frozen int
		limit  time.Duration // from the first look on
	}{{2, time.Second}, {5, time.Second}, {16, 2 * time.Second}, {30, 3200 * time.Millisecond}} {
		t.Run(fmt.Sprint(tc.frozen), func(t *testing.T) {
			virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
				l := frozenWaiters(b, tc.frozen, redlock.Config{})
				w := b.ReadyParty(redlock.Config{}).Wait(key, time.Hour)
				time.Sleep(4 * time.Second)
				b.Release(l) // a second is over at the look after 7 s
				b.Release(w.Hold())
				assert.Less(b, w.Got.Sub(w.Begun), 7*time.Second+tc.limit+time.Second/2)
			})
		})
	}
}

// Live waiters among those that are woken together get the lock in their order, and keep it.
func TestAcquireBetweenFrozenWaiters(t *testing.T) {
	virtual.Crowded(t)
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
		parties := b.ReadyParties(12, redlock.Config{})
		var queue []*virtual.Waiter
		for i, p := range parties {
			w := b.WaitInTurn([]*virtual.Party{p}, key, 5*time.Millisecond)[0]
			if i%3 == 2 {
				queue = append(queue, w)
			}
		}
		for i, p := range parties {
			if i%3 < 2 {
				p.Hang()
			}
		}
		released := time.Now()
		assert.Equal(b, []int{0, 1, 2, 3}, order(b, l, queue))
		assert.Less(b, queue[3].Got.Sub(released), 7*time.Second)
	})
}

// With Fair, a newcomer is refused a free key for as long.
func TestTryAcquireBehindFrozenWaiters(t *testing.T) {
	virtual.Crowded(t)
	fair := redlock.Config{Fair: true}
	virtual.Run(t, 3, fair, func(b *virtual.Bed) {
		l, p := frozenWaiters(b, 16, fair), b.ReadyParty(fair)
		time.Sleep(4 * time.Second)
		released := time.Now()
		b.Release(l)
		for {
			l, err := p.TryAcquire(ctx, key, time.Minute)
			if err == nil {
				b.Release(l)
				break
			}
			require.ErrorIs(b, err, redlock.ErrHeld)
			time.Sleep(50 * time.Millisecond)
		}
		assert.Less(b, time.Since(released), 3*time.Second+time.Second/2, "one, four, sixteen")
	})
}

// One script removes at most a hundred dead entries, and its sender continues. The live waiter
// behind them is woken as soon as they are gone.
func TestReleaseRemovesTheDeadInSteps(t *testing.T) {
	for name, free := range map[string]func(*virtual.Bed, *virtual.Party, *redlock.Lock){
		"release": func(b *virtual.Bed, _ *virtual.Party, l *redlock.Lock) {
			go func() { assert.NoError(b, l.Release(ctx)) }()
		},
		"force": func(b *virtual.Bed, p *virtual.Party, _ *redlock.Lock) {
			seen, err := p.Inspect(ctx, key)
			require.NoError(b, err)
			go func() {
				_, err := p.ForceRelease(ctx, seen)
				assert.NoError(b, err)
			}()
		},
		"a newcomer": func(b *virtual.Bed, p *virtual.Party, _ *redlock.Lock) {
			for i := range b.Masters.Len() {
				b.Redis(i).Del(key)
			}
			go func() {
				_, err := p.TryAcquire(ctx, key, time.Minute)
				assert.ErrorIs(b, err, redlock.ErrHeld)
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
				fair := redlock.Config{Fair: true}
				p := b.ReadyParty(fair)
				l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
				w := b.ReadyParty(redlock.Config{}).Wait(key, time.Hour)
				time.Sleep(100 * time.Millisecond)
				const dead = 1000
				most := 100
				if name == "a newcomer" { // its clean-up comes with the first step
					most = 200
				}
				for i := range b.Masters.Len() {
					for n := range dead {
						_, err := b.Redis(i).ZAdd("redlock:queue:{"+key+"}", 2e14+float64(n), fmt.Sprint("gone", n, " ", key))
						require.NoError(b, err)
					}
				}
				b.Delay(5*time.Millisecond, 5*time.Millisecond)
				free(b, p, l)
				freed := time.Now()
				time.Sleep(time.Millisecond / 2)
				for before := dead + 1; !w.Over(); {
					after := len(b.Queued(0, key))
					require.LessOrEqual(b, before-after, most)
					require.Less(b, time.Since(freed), 500*time.Millisecond, "%d are left", after)
					before = after
					time.Sleep(time.Millisecond)
				}
				b.Release(w.Hold())
				assert.Less(b, w.Got.Sub(freed), 200*time.Millisecond, "ten steps, a message and a try")
				b.NoQueues()
			})
		})
	}
}
