package redlock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/redlock"
)

// jitter has everything that a party sends and gets take from half of d to all of it.
func (p *party) jitter(seed uint64, d time.Duration) {
	for i, path := range p.paths {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		var mu sync.Mutex // its connections ask side by side
		path.Shape(func(faultlink.Direction) (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			return d/2 + time.Duration(random.Int64N(int64(d/2))), false
		})
	}
}

// loop has parties take the lock and give it back without a pause, until there have been
// so many turns in all, and lists whose they were.
func loop(b *bed, parties []*party, turns int) (whose []int) {
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

// jain is 1 if all have as many, and 1/n if one has all.
func jain(each []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range each {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(each)) * squares)
}

// Case 24 too: who releases the lock and wants it again at once is not ahead of whom its
// release woke, wherever the clocks stand: everybody has as many turns as the others.
func TestWhoComesBackAtOnceTakesTurns(t *testing.T) {
	crowded(t)
	const s = time.Second
	for _, offsets := range [][]time.Duration{
		{0, 0, 0, 0, 0, 0, 0, 0},
		{0, 0, 0, -10 * s, 0, 0, 0, 0},
		{0, 0, 0, 10 * s, 0, 0, 0, 0},
		{0, -1 * s, 2 * s, -3 * s, 4 * s, -5 * s, 6 * s, -7 * s},
	} {
		for _, fair := range []bool{false, true} {
			virtually(t, 5, redlock.Config{}, func(b *bed) {
				var all []*party
				for i, offset := range offsets {
					cfg := by(offset)
					cfg.Fair = fair
					all = append(all, b.ready(cfg))
					all[i].jitter(uint64(i), 2*time.Millisecond)
				}
				tape := b.record(all...)
				const turns = 200
				var whose []int
				virtual := took(func() { whose = loop(b, all, turns) })
				each, commands := make([]int, len(all)), 0
				for _, i := range whose[40:turns] { // by then all of them are there and know the clocks
					each[i]++
				}
				assert.Greater(b, jain(each), 0.99, "%v of 160, clocks %v", each, offsets)
				for _, n := range each {
					assert.InDelta(b, 20, n, 2, "%v, clocks %v", each, offsets)
				}
				for _, c := range asked(tape.count()) {
					commands += c["try"] + c["stand"] + c["leave"] + c["release"] + c["SET"]
				}
				assert.Less(b, commands, 20*len(whose), "ten, and those to take a place")
				assert.Less(b, virtual, time.Duration(len(whose))*9*time.Millisecond, "two slow round trips and a millisecond to hold it")
				b.noQueues()
			})
		}
	}
}

// stream has somebody new want the key every millisecond or so, for whom a turn takes
// 300 µs, while another has waited for half a second when the lock is released. It returns
// how many of them had the lock before, and how long the release was ago by then.
func stream(b *bed, cfg redlock.Config, want func(*party) (*redlock.Lock, error), seed uint64) (overtook int, after time.Duration) {
	b.delay(500*time.Microsecond, 500*time.Microsecond)
	holder, patient, fresh := b.ready(cfg), b.ready(cfg), b.crowd(40, cfg)
	l := b.hold(holder, time.Hour)
	w := patient.wait(key, time.Hour)
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
				if !w.over() {
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
	l = w.hold()
	cancel()
	require.NoError(b, l.Release(ctx))
	all.Wait()
	b.noQueues()
	return overtook, w.got.Sub(released)
}

func tries(p *party) (*redlock.Lock, error)    { return p.TryAcquire(ctx, key, time.Hour) }
func acquires(p *party) (*redlock.Lock, error) { return p.Acquire(ctx, key, time.Hour) }

// With Fair nobody who comes later has the lock before, whether he waits or only tries.
func TestFairKeepsNewcomersBehind(t *testing.T) {
	crowded(t)
	for name, want := range map[string]func(*party) (*redlock.Lock, error){"try": tries, "acquire": acquires} {
		for seed := range uint64(5) {
			virtually(t, 5, redlock.Config{}, func(b *bed) {
				overtook, after := stream(b, redlock.Config{Fair: true}, want, seed)
				assert.Zero(b, overtook, "%s, seed %d", name, seed)
				assert.Equal(b, 2*time.Millisecond, after, "two round trips")
			})
		}
	}
}

// Without Fair a free key is for whom comes first. From when a release arrives to when
// whom it woke does is a round trip, here of a millisecond, and somebody new arrives in it
// with a probability of 1-1/e: so the wait is over after e such windows on the average.
// Who has been overtaken twice pauses before each further try, at random and for 100 ms at
// the most, and is then like somebody new: of 60 seeds the worst took 0.3 s.
func TestWithoutFairNewcomersDoNotStarveWhoWaits(t *testing.T) {
	crowded(t)
	for name, want := range map[string]func(*party) (*redlock.Lock, error){"try": tries, "acquire": acquires} {
		sum := 0
		for seed := range uint64(10) {
			virtually(t, 5, redlock.Config{}, func(b *bed) {
				overtook, after := stream(b, redlock.Config{}, want, seed)
				assert.LessOrEqual(b, after, time.Second, "%s, seed %d: %d overtook", name, seed, overtook)
				sum += overtook
			})
		}
		assert.Positive(t, sum, "otherwise it shows nothing")
	}
}

// A waiter that has crashed is nobody: the key is free, and nobody waits.
func TestFairAndACrashedWaiter(t *testing.T) {
	virtually(t, 3, redlock.Config{Fair: true}, func(b *bed) {
		b.warm()
		for i := range b.masters.Len() {
			_, err := b.redis(i).ZAdd("redlock:queue:{"+key+"}", float64(time.Now().UnixMicro()), "gone "+key)
			require.NoError(b, err)
			require.NoError(b, b.redis(i).Set("redlock:queued:{"+key+"}", "1"))
		}
		require.NoError(b, b.acquire(key, ttl).Release(ctx))
	})
}

// Who waits may be of the same Redlock, which has one name in the queue.
func TestFairKeepsNewcomersBehindTheirOwnLine(t *testing.T) {
	for d := range 20 {
		virtually(t, 3, redlock.Config{Fair: true}, func(b *bed) {
			b.warm()
			b.delay(5*time.Millisecond, 5*time.Millisecond)
			l, err := b.client(redlock.Config{Fair: true}).TryAcquire(ctx, key, time.Minute)
			require.NoError(b, err)
			got := make(chan *redlock.Lock, 1)
			go func() {
				l, err := b.lock.Acquire(ctx, key, time.Minute)
				assert.NoError(b, err)
				got <- l
			}()
			time.Sleep(3 * time.Second)
			go func() { _ = l.Release(ctx) }()
			time.Sleep(time.Duration(d) * time.Millisecond)
			_, err = b.lock.TryAcquire(ctx, key, time.Minute)
			assert.ErrorIs(b, err, redlock.ErrHeld, "%d ms after the release", d)
			require.NoError(b, (<-got).Release(ctx))
		})
	}
}
