package redlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// by is a configuration with a clock that stands offset away.
func by(offset time.Duration) redlock.Config {
	return redlock.Config{Clock: clock.Skewed(clock.System(), 1, offset)}
}

// order releases the lock again and again until everybody who waits has had it, and
// returns in which order they had.
func order(b *virtual.Bed, l *redlock.Lock, queue []*virtual.Waiter) (got []int) {
	for range queue {
		time.Sleep(time.Millisecond)
		b.Release(l)
		next := make(chan int, len(queue))
		for i, w := range queue {
			go func() {
				<-w.Done
				next <- i
			}()
		}
		for {
			i := <-next
			if !slices.Contains(got, i) {
				got = append(got, i)
				l = queue[i].Hold()
				break
			}
		}
	}
	b.Release(l)
	return got
}

func TestRedlocksGetALockInTheOrderInWhichTheyCame(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
		queue := b.WaitInTurn(b.ReadyParties(10, redlock.Config{}), key, 30*time.Millisecond)
		assert.Equal(b, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order(b, l, queue))
		b.NoQueues()
	})
}

// One whose clock is 10 s behind would be ahead of all who wait, but a node's answer tells
// it of their tickets, and it takes a place behind them. It overtakes no more than the last
// of them, and the others keep their order.
func TestAClockThatIsBehindOvertakesNobodyForLong(t *testing.T) {
	for _, later := range []time.Duration{0, 3 * time.Second, 30 * time.Second} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			holder := b.ReadyParty(redlock.Config{})
			parties := append(b.ReadyParties(4, redlock.Config{}), b.ReadyParty(by(-10*time.Second)))
			for range 3 {
				l := b.Hold(holder, time.Hour)
				queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
				time.Sleep(later)
				got := order(b, l, queue)
				assert.Equal(b, []int{0, 1, 2}, got[:3], "%v later", later)
				time.Sleep(time.Second)
				b.NoQueues()
			}
		})
	}
}

// Whatever the clocks of three who take the lock again and again, who comes then has it
// after each of them has had it twice, at the most.
func TestClocksThatAreWrongStarveNobody(t *testing.T) {
	virtual.Crowded(t)
	const s = time.Second
	for _, offsets := range [][]time.Duration{{10 * s, 20 * s, 30 * s}, {-10 * s, -20 * s, -30 * s}, {10 * s, -10 * s, 0}} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			patient, turns := b.ReadyParty(redlock.Config{}), 0
			stop, cancel := context.WithCancel(ctx)
			var all sync.WaitGroup
			for i, offset := range offsets {
				p := b.ReadyParty(by(offset))
				jitterPaths(p, uint64(i), 2*time.Millisecond)
				all.Go(func() {
					for stop.Err() == nil {
						l, err := p.Acquire(ctx, key, time.Minute)
						if !assert.NoError(b, err) {
							return
						}
						turns++ // unguarded: the lock is the guard
						time.Sleep(5 * time.Millisecond)
						assert.NoError(b, l.Release(ctx))
					}
				})
			}
			for range 20 {
				time.Sleep(37 * time.Millisecond)
				before := turns
				l := patient.Wait(key, time.Minute).Hold()
				assert.LessOrEqual(b, turns-before, 2*len(offsets), "clocks %v", offsets)
				require.NoError(b, l.Release(ctx))
			}
			cancel()
			all.Wait()
			time.Sleep(time.Second)
			b.NoQueues()
		})
	}
}

// Who learns that its clock is behind goes behind those who are there already, by a ticket
// of its own: equal ones would be in the order of random names.
func TestARaisedTicketIsAboveTheTail(t *testing.T) {
	for range 5 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			parties := append(b.ReadyParties(3, redlock.Config{}), b.ReadyParty(by(-10*time.Second)))
			l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
			queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
			assert.Equal(b, []int{0, 1, 2, 3}, order(b, l, queue))
		})
	}
}

// A clock that is ahead overtakes nobody who stands in the queue when it comes.
func TestAFastClockOvertakesNobody(t *testing.T) {
	for range 5 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			parties := append(b.ReadyParties(2, redlock.Config{}), b.ReadyParty(by(10*time.Second)))
			parties = append(parties, b.ReadyParties(2, redlock.Config{})...)
			l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
			queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
			time.Sleep(3 * time.Second)
			assert.Equal(b, []int{0, 1, 2, 3, 4}, order(b, l, queue))
		})
	}
}
