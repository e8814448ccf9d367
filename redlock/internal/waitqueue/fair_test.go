package waitqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// jitterPaths delays everything that a party sends and receives by d/2 to d.
func jitterPaths(p *virtual.Party, seed uint64, d time.Duration) {
	for i, path := range p.Paths {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var mu sync.Mutex // the connections draw concurrently
		path.Shape(func(faultlink.Direction) (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			return d/2 + time.Duration(random.Int64N(int64(d/2))), false
		})
	}
}

// loop lets parties take and release the lock without a pause, until they have had so many turns in
// all. It returns the party of each turn.
func loop(b *virtual.Bed, parties []*virtual.Party, turns int) (whose []int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	held := false
	for i, p := range parties {
		all.Go(func() {
			for over := false; !over; {
				l, err := p.Acquire(ctx, key, time.Minute)
				if !assert.NoError(b, err) {
					return
				}
				mu.Lock()
				assert.False(b, held, "two holders")
				held = true
				whose = append(whose, i)
				over = len(whose) >= turns
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				held = false
				mu.Unlock()
				assert.NoError(b, l.Release(ctx))
			}
		})
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	return whose
}

// jain is 1 if all have the same number, and 1/n if one has all.
func jain(each []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range each {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(each)) * squares)
}

// This is also case 24. A client that releases the lock and wants it again at once is not ahead of
// the waiter that its release woke, with any clocks. Each client has as many turns as the others.
func TestAcquireRepeatedAtOnceTakesTurns(t *testing.T) {
	virtual.Crowded(t)
	const s = time.Second
	for _, offsets := range [][]time.Duration{
		{0, 0, 0, 0, 0, 0, 0, 0},
		{0, 0, 0, -10 * s, 0, 0, 0, 0},
		{0, 0, 0, 10 * s, 0, 0, 0, 0},
		{0, -1 * s, 2 * s, -3 * s, 4 * s, -5 * s, 6 * s, -7 * s},
	} {
		for _, fair := range []bool{false, true} {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				var all []*virtual.Party
				for i, offset := range offsets {
					cfg := by(offset)
					cfg.Fair = fair
					all = append(all, b.ReadyParty(cfg))
					jitterPaths(all[i], uint64(i), 2*time.Millisecond)
				}
				tape := b.Record(all...)
				const turns = 200
				var whose []int
				elapsed := virtual.Took(func() { whose = loop(b, all, turns) })
				each, commands := make([]int, len(all)), 0
				for _, i := range whose[40:turns] { // by then all have come and know the clocks
					each[i]++
				}
				assert.Greater(b, jain(each), 0.99, "%v of 160, clocks %v", each, offsets)
				for _, n := range each {
					assert.InDelta(b, 20, n, 2, "%v, clocks %v", each, offsets)
				}
				for _, c := range virtual.WithoutPings(tape.Count()) {
					commands += c["try"] + c["enqueue"] + c["dequeue"] + c["release"] + c["SET"]
				}
				assert.Less(b, commands, 20*len(whose), "ten, and those to take a place")
				assert.Less(b, elapsed, time.Duration(len(whose))*9*time.Millisecond, "two slow round trips and a millisecond to hold it")
				b.NoQueues()
			})
		}
	}
}

// stream makes newcomers want the key every millisecond or so, each for a turn of 300 µs. A waiter
// has waited for half a second when the lock is released. stream returns how many newcomers got the
// lock before the waiter, and how long after the release the waiter got it.
func stream(b *virtual.Bed, cfg redlock.Config, want func(*virtual.Party) (*redlock.Lock, error), seed uint64) (overtook int, after time.Duration) {
	b.Delay(500*time.Microsecond, 500*time.Microsecond)
	holder, patient, fresh := b.ReadyParty(cfg), b.ReadyParty(cfg), b.ReadyParties(40, cfg)
	l := b.Hold(holder, time.Hour)
	w := patient.Wait(key, time.Hour)
	time.Sleep(500 * time.Millisecond)

	random := rand.New(rand.NewPCG(seed, 0))
	stop, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; stop.Err() == nil; i++ {
			all.Go(func() {
				l, err := want(fresh[i%len(fresh)])
				if err != nil {
					assert.ErrorIs(b, err, redlock.ErrHeld)
					return
				}
				if !w.Over() {
					overtook++
				}
				time.Sleep(300 * time.Microsecond)
				assert.NoError(b, l.Release(ctx))
			})
			time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Millisecond)))
		}
	})
	time.Sleep(20 * time.Millisecond)
	released := time.Now()
	require.NoError(b, l.Release(ctx))
	l = w.Hold()
	cancel()
	require.NoError(b, l.Release(ctx))
	all.Wait()
	b.NoQueues()
	return overtook, w.Got.Sub(released)
}

func tries(p *virtual.Party) (*redlock.Lock, error) { return p.TryAcquire(ctx, key, time.Hour) }

func acquires(p *virtual.Party) (*redlock.Lock, error) { return p.Acquire(ctx, key, time.Hour) }

// With Fair no client that comes later gets the lock earlier, whether it waits or only tries.
func TestAcquireFairKeepsNewcomersBehind(t *testing.T) {
	virtual.Crowded(t)
	for name, want := range map[string]func(*virtual.Party) (*redlock.Lock, error){"try": tries, "acquire": acquires} {
		for seed := range uint64(5) {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				overtook, after := stream(b, redlock.Config{Fair: true}, want, seed)
				assert.Zero(b, overtook, "%s, seed %d", name, seed)
				assert.Equal(b, 2*time.Millisecond, after, "two round trips")
			})
		}
	}
}

// Without Fair the first request that arrives takes a free key. Between the arrival of a release
// and that of the woken waiter there is a round trip, here of a millisecond, and a newcomer arrives
// in it with a probability of 1-1/e. So the wait is over after e such windows on average. A waiter
// that has been overtaken twice pauses before each further try, for a random time of at most 100
// ms, and is then like a newcomer. Of 60 seeds the worst took 0.3 s.
func TestAcquireUnfairNewcomersDoNotStarveWaiters(t *testing.T) {
	virtual.Crowded(t)
	for name, want := range map[string]func(*virtual.Party) (*redlock.Lock, error){"try": tries, "acquire": acquires} {
		sum := 0
		for seed := range uint64(10) {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				overtook, after := stream(b, redlock.Config{}, want, seed)
				assert.LessOrEqual(b, after, time.Second, "%s, seed %d: %d overtook", name, seed, overtook)
				sum += overtook
			})
		}
		assert.Positive(t, sum, "otherwise it shows nothing")
	}
}

// A crashed waiter does not count: the key is free, and nobody waits.
func TestAcquireFairBesideACrashedWaiter(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fair: true}, func(b *virtual.Bed) {
		b.Warm()
		for i := range b.Masters.Len() {
			_, err := b.Redis(i).ZAdd("redlock:queue:{"+key+"}", float64(time.Now().UnixMicro()), "gone "+key)
			require.NoError(b, err)
			require.NoError(b, b.Redis(i).Set("redlock:queued:{"+key+"}", "1"))
		}
		require.NoError(b, b.Acquire(key, ttl).Release(ctx))
	})
}

// The waiter may belong to the same Redlock, which has one name in the queue.
func TestAcquireFairKeepsNewcomersBehindTheirLocalQueue(t *testing.T) {
	for d := range 20 {
		virtual.Run(t, 3, redlock.Config{Fair: true}, func(b *virtual.Bed) {
			b.Warm()
			b.Delay(5*time.Millisecond, 5*time.Millisecond)
			l, err := b.NewRedlock(redlock.Config{Fair: true}).TryAcquire(ctx, key, time.Minute)
			require.NoError(b, err)
			got := make(chan *redlock.Lock, 1)
			go func() {
				l, err := b.Redlock.Acquire(ctx, key, time.Minute)
				assert.NoError(b, err)
				got <- l
			}()
			time.Sleep(3 * time.Second)
			go func() { _ = l.Release(ctx) }()
			time.Sleep(time.Duration(d) * time.Millisecond)
			_, err = b.Redlock.TryAcquire(ctx, key, time.Minute)
			assert.ErrorIs(b, err, redlock.ErrHeld, "%d ms after the release", d)
			require.NoError(b, (<-got).Release(ctx))
		})
	}
}

// A free key without waiters is granted to a client whose clock is below the fence: the node
// reports that the token is too low, and the client proposes a higher one. Each kind of caller is a
// newcomer to the queue in its first attempt.
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
