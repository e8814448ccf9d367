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
	"github.com/quorumlock/redlock/redlock"
)

// by is a configuration with a clock that stands offset away.
func by(offset time.Duration) redlock.Config {
	return redlock.Config{Clock: clock.Skewed(clock.System(), 1, offset)}
}

// order releases the lock again and again until everybody who waits has had it, and
// returns in which order they had.
func order(b *bed, l *redlock.Lock, queue []*waiter) (got []int) {
	for range queue {
		time.Sleep(time.Millisecond)
		b.release(l)
		next := make(chan int, len(queue))
		for i, w := range queue {
			go func() {
				<-w.done
				next <- i
			}()
		}
		for {
			i := <-next
			if !slices.Contains(got, i) {
				got = append(got, i)
				l = queue[i].hold()
				break
			}
		}
	}
	b.release(l)
	return got
}

func TestRedlocksGetALockInTheOrderInWhichTheyCame(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.delay(5*time.Millisecond, 5*time.Millisecond)
		l := b.hold(b.ready(redlock.Config{}), time.Hour)
		queue := b.line(b.crowd(10, redlock.Config{}), key, 30*time.Millisecond)
		assert.Equal(b, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order(b, l, queue))
		b.noQueues()
	})
}

// One whose clock is 10 s behind would be ahead of all who wait, but a node's answer tells
// it of their tickets, and it takes a place behind them. It overtakes no more than the last
// of them, and the others keep their order.
func TestAClockThatIsBehindOvertakesNobodyForLong(t *testing.T) {
	for _, later := range []time.Duration{0, 3 * time.Second, 30 * time.Second} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			holder := b.ready(redlock.Config{})
			parties := append(b.crowd(4, redlock.Config{}), b.ready(by(-10*time.Second)))
			for range 3 {
				l := b.hold(holder, time.Hour)
				queue := b.line(parties, key, 100*time.Millisecond)
				time.Sleep(later)
				got := order(b, l, queue)
				assert.Equal(b, []int{0, 1, 2}, got[:3], "%v later", later)
				time.Sleep(time.Second)
				b.noQueues()
			}
		})
	}
}

// Whatever the clocks of three who take the lock again and again, who comes then has it
// after each of them has had it twice, at the most.
func TestClocksThatAreWrongStarveNobody(t *testing.T) {
	crowded(t)
	const s = time.Second
	for _, offsets := range [][]time.Duration{{10 * s, 20 * s, 30 * s}, {-10 * s, -20 * s, -30 * s}, {10 * s, -10 * s, 0}} {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			patient, turns := b.ready(redlock.Config{}), 0
			stop, cancel := context.WithCancel(ctx)
			var all sync.WaitGroup
			for i, offset := range offsets {
				p := b.ready(by(offset))
				p.jitter(uint64(i), 2*time.Millisecond)
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
				l := patient.wait(key, time.Minute).hold()
				assert.LessOrEqual(b, turns-before, 2*len(offsets), "clocks %v", offsets)
				require.NoError(b, l.Release(ctx))
			}
			cancel()
			all.Wait()
			time.Sleep(time.Second)
			b.noQueues()
		})
	}
}

// Who learns that its clock is behind goes behind those who are there already, by a ticket
// of its own: equal ones would be in the order of random names.
func TestARaisedTicketIsAboveTheTail(t *testing.T) {
	for range 5 {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			parties := append(b.crowd(3, redlock.Config{}), b.ready(by(-10*time.Second)))
			l := b.hold(b.ready(redlock.Config{}), time.Hour)
			queue := b.line(parties, key, 100*time.Millisecond)
			assert.Equal(b, []int{0, 1, 2, 3}, order(b, l, queue))
		})
	}
}

// A clock that is ahead overtakes nobody who stands in the queue when it comes.
func TestAFastClockOvertakesNobody(t *testing.T) {
	for range 5 {
		virtually(t, 5, redlock.Config{}, func(b *bed) {
			parties := append(b.crowd(2, redlock.Config{}), b.ready(by(10*time.Second)))
			parties = append(parties, b.crowd(2, redlock.Config{})...)
			l := b.hold(b.ready(redlock.Config{}), time.Hour)
			queue := b.line(parties, key, 100*time.Millisecond)
			time.Sleep(3 * time.Second)
			assert.Equal(b, []int{0, 1, 2, 3, 4}, order(b, l, queue))
		})
	}
}
