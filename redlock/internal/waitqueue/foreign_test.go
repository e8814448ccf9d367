package waitqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// foreigner is a client of another library: it polls with SET NX, and its release wakes no waiter.
type foreigner struct {
	hold, think, beat time.Duration // with a beat it holds the key once in each beat
	random            *rand.Rand
	nodes             []*redis.Client
	turns             int
}

func (f *foreigner) run(c context.Context, name string) {
	begun := time.Now()
	for turn := 1; c.Err() == nil; turn++ {
		value := fmt.Sprint(name, turn)
		for !f.takes(value) {
			time.Sleep(50*time.Millisecond + time.Duration(f.random.Int64N(int64(200*time.Millisecond))))
			if c.Err() != nil {
				return
			}
		}
		f.turns++
		time.Sleep(f.hold)
		f.gives(value)
		time.Sleep(f.think)
		if f.beat > 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(turn) * f.beat)))
		}
	}
}

func (f *foreigner) takes(value string) bool {
	got := 0
	for i := range f.nodes {
		if ok, err := f.nodes[i].SetNX(ctx, key, value, time.Hour).Result(); ok && err == nil {
			got++
		}
	}
	if got > len(f.nodes)/2 {
		return true
	}
	f.gives(value)
	return false
}

func (f *foreigner) gives(value string) {
	for i := range f.nodes {
		f.nodes[i].Eval(ctx, "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end", []string{key}, value)
	}
}

// Beside clients that wake nobody, a waiter gets at least 0.7 of the turns that it would get by
// polling TryAcquire at the pace of such a client. 19 of 20 of its waits are at most twice as long.
// Each run takes another course. The longest of 200 waits is between one and some seconds, because
// the key may change hands so that no waiter sees it. It is never longer than the longest pause
// between two looks.
func TestAcquireBesideClientsThatWakeNobody(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		ours, theirs    int
		hold, think     time.Duration
		beat, theirHold time.Duration
	}{
		"two and two":   {ours: 2, theirs: 2, hold: 300 * ms, think: 300 * ms, theirHold: 300 * ms},
		"one and six":   {ours: 1, theirs: 6, hold: 300 * ms, think: 300 * ms, theirHold: 300 * ms},
		"an exact beat": {ours: 1, theirs: 1, hold: 20 * ms, think: 100 * ms, theirHold: 400 * ms, beat: 500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(acquire func(context.Context, *virtual.Party, *rand.Rand) (*redlock.Lock, error)) (got int, most, longest time.Duration) {
				var waits []time.Duration
				virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
					parties := b.ReadyParties(c.ours, redlock.Config{})
					for i, p := range parties {
						jitterPaths(p, uint64(i), ms)
					}
					until, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					var all sync.WaitGroup
					for i := range c.theirs {
						f := &foreigner{hold: c.theirHold, think: c.think, beat: c.beat, random: rand.New(rand.NewPCG(7, uint64(i)))}
						if c.beat > 0 {
							f.think = 0
						}
						for _, m := range b.Masters.All() {
							client := m.Path().Client()
							b.Cleanup(func() { _ = client.Close() })
							f.nodes = append(f.nodes, client)
						}
						all.Go(func() { f.run(until, fmt.Sprint("foreign ", i, " ")) })
					}
					var mu sync.Mutex
					for i, p := range parties {
						random := rand.New(rand.NewPCG(8, uint64(i)))
						all.Go(func() {
							for until.Err() == nil {
								begun := time.Now()
								l, err := acquire(until, p, random)
								mu.Lock()
								waits = append(waits, time.Since(begun))
								mu.Unlock()
								if err != nil {
									return
								}
								mu.Lock()
								got++
								mu.Unlock()
								time.Sleep(c.hold)
								_ = l.Release(ctx)
								time.Sleep(c.think)
							}
						})
					}
					all.Wait()
				})
				if len(waits) == 0 {
					return 0, 0, 0 // skipped
				}
				slices.Sort(waits)
				return got, waits[len(waits)*19/20], waits[len(waits)-1]
			}
			polled, most, longestPoll := run(func(c context.Context, p *virtual.Party, random *rand.Rand) (*redlock.Lock, error) {
				for {
					l, err := p.TryAcquire(c, key, time.Minute)
					if err == nil || c.Err() != nil {
						return l, err
					}
					time.Sleep(50*ms + time.Duration(random.Int64N(int64(200*ms))))
				}
			})
			waited, longer, longest := run(func(c context.Context, p *virtual.Party, _ *rand.Rand) (*redlock.Lock, error) {
				return p.Acquire(c, key, time.Minute)
			})
			t.Logf("%d locks by polling, 19 in 20 within %v, all within %v; %d by Acquire, within %v and %v", polled, most, longestPoll, waited, longer, longest)
			assert.GreaterOrEqual(t, float64(waited), 0.7*float64(polled))
			assert.LessOrEqual(t, longer, 2*most)
			assert.LessOrEqual(t, longest, 15*time.Second)
		})
	}
}

// delays makes each message on a path take from least to most.
func delays(path *inmemory.Path, random *rand.Rand, least, most time.Duration) {
	var mu sync.Mutex // the connections draw concurrently
	path.Shape(func(faultlink.Direction) (time.Duration, bool) {
		mu.Lock()
		defer mu.Unlock()
		return least + time.Duration(random.Int64N(int64(most-least)+1)), false
	})
}

// Waiters of this library, and newcomers that overtake them, are not taken for clients that wake
// nobody: no waiter polls.
func TestAcquireDoesNotPollBesideClientsThatWake(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		parties := b.ReadyParties(4, redlock.Config{})
		for i, p := range parties {
			jitterPaths(p, uint64(i), 2*time.Millisecond)
		}
		var all sync.WaitGroup
		until, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		tape := b.Record(parties...)
		locks, tries := 0, 0
		var mu sync.Mutex
		for i, p := range parties {
			random := rand.New(rand.NewPCG(9, uint64(i)))
			all.Go(func() {
				for until.Err() == nil {
					var l *redlock.Lock
					var err error
					if i == 0 { // a newcomer each time
						l, err = p.TryAcquire(until, key, time.Minute)
						mu.Lock()
						tries++
						mu.Unlock()
					} else {
						l, err = p.Acquire(until, key, time.Minute)
					}
					if err == nil {
						mu.Lock()
						locks++
						mu.Unlock()
						time.Sleep(time.Duration(random.Int64N(int64(3 * time.Second))))
						_ = l.Release(ctx)
					}
					time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
				}
			})
		}
		all.Wait()
		n := 0
		for name, c := range virtual.WithoutPings(tape.Count()) {
			n += c["try"]
			if name != parties[0].Name {
				assert.LessOrEqual(b, c["try"]/5, 2*locks, "%s: %v", name, c)
			}
		}
		assert.LessOrEqual(b, n/5, 2*locks+10, "%d tries, %d locks", n/5, locks)
	})
}
