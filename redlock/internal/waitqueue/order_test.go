package waitqueue_test

import (
	"context"
	"fmt"
	"math"
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

// by is a configuration with a clock that is off by offset.
func by(offset time.Duration) redlock.Config {
	return redlock.Config{Clock: clock.Skewed(clock.System(), 1, offset)}
}

// order releases the lock again and again until every waiter has had it. It returns their order.
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

func TestAcquireFirstComeFirstServed(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
		queue := b.WaitInTurn(b.ReadyParties(10, redlock.Config{}), key, 30*time.Millisecond)
		assert.Equal(b, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order(b, l, queue))
		b.NoQueues()
	})
}

// A client whose clock is 10 s behind would be ahead of all waiters, but a node's answer reports
// their tickets, and the client queues behind them. It overtakes at most the last of them, and the
// others keep their order.
func TestAcquireWithAClockThatIsBehindOvertakesOnce(t *testing.T) {
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

// Three clients with any clocks take the lock again and again. A newcomer gets it after each of
// them has had it at most twice.
func TestAcquireStarvesNoWaiterWithWrongClocks(t *testing.T) {
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

// A client that learns that its clock is behind takes a ticket of its own above those in the queue.
// Equal tickets would be in the order of random names.
func TestAcquireRaisesItsTicketAboveTheTail(t *testing.T) {
	for range 5 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			parties := append(b.ReadyParties(3, redlock.Config{}), b.ReadyParty(by(-10*time.Second)))
			l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
			queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
			assert.Equal(b, []int{0, 1, 2, 3}, order(b, l, queue))
		})
	}
}

// A client whose clock is ahead overtakes no waiter that is in the queue when it comes.
func TestAcquireWithAFastClockOvertakesNoWaiter(t *testing.T) {
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

// Four clients take the lock again and again. Each has its share, however far apart their clocks
// are: a day, decades, or beyond any valid time.
func TestAcquireTakesTurnsHoweverWrongTheClocks(t *testing.T) {
	virtual.Crowded(t)
	const hour, year = time.Hour, 365 * 24 * time.Hour // a bubble's time begins in 2000
	for name, offsets := range map[string][]time.Duration{
		"one 25 h ahead":           {0, 0, 25 * hour, 0},
		"two 25 h behind":          {0, -25 * hour, 0, -25 * hour},
		"one years ahead":          {0, 0, 50 * year, 0},
		"one in 1970, one in 2200": {0, -30 * year, 200 * year, 0},
		"one in 1800":              {0, 0, -200 * year, 0},
	} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Fair %v", name, fair), func(t *testing.T) {
				virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
					var all []*virtual.Party
					for i, offset := range offsets {
						cfg := by(offset)
						cfg.Fair = fair
						all = append(all, b.ReadyParty(cfg))
						jitterPaths(all[i], uint64(i), 2*time.Millisecond)
					}
					const turns, before = 60, 20 // by then they know the clocks
					each := make([]int, len(all))
					for _, i := range loop(b, all, turns)[before:turns] {
						each[i]++
					}
					for _, n := range each {
						assert.InDelta(b, 10, n, 2, "%v", each)
					}
					b.NoQueues()
				})
			})
		}
	}
}

// Scores that are no tickets, and members that are no clients, are skipped. They do not hide the
// tickets below them: a client whose clock is behind finds out. A member that a node cannot tell
// from a client has a second, like any client.
func TestAcquireWithGarbageInTheQueue(t *testing.T) {
	inf := math.Inf(1)
	for name, score := range map[string]float64{
		"the highest": inf, "the lowest": -inf, "far ahead": 9e15, "huge": 1e300, "negative": -9e15, "tiny": 0.5,
		"a fraction": 946684800000000.5, "first": 1e14 + 0.5,
	} {
		for _, member := range []string{"nobody here", "", " ", "@", "@nobody x", "{x}y z", "\xff\x00"} {
			t.Run(fmt.Sprintf("%s %q", name, member), func(t *testing.T) {
				virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
					parties := append(b.ReadyParties(1, redlock.Config{}), b.ReadyParty(by(-25*time.Hour)))
					l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
					_, err := b.Redis(0).ZAdd("redlock:queue:{"+key+"}", score, member)
					require.NoError(b, err)
					require.NoError(b, b.Redis(0).Set("redlock:queued:{"+key+"}", "1"))
					queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
					released := time.Now()
					require.Equal(b, []int{0, 1}, order(b, l, queue))
					assert.LessOrEqual(b, queue[1].Got.Sub(released), time.Second+20*time.Millisecond)
				})
			})
		}
	}
}
