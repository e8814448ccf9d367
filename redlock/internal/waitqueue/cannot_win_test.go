package waitqueue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// turns lets parties take the lock for 20 ms each, over and over, for d. It returns how many turns
// each party had, and the longest time between two turns of any parties.
func turns(b *virtual.Bed, parties []*virtual.Party, d time.Duration) (each []int, gap time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	each = make([]int, len(parties))
	end := time.Now().Add(d)
	last := time.Now()
	c, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	for i, p := range parties {
		all.Go(func() {
			for time.Now().Before(end) {
				l, err := p.Acquire(c, key, time.Minute)
				if err != nil {
					assert.ErrorIs(b, err, context.DeadlineExceeded)
					return
				}
				mu.Lock()
				each[i]++
				gap = max(gap, time.Since(last))
				last = time.Now()
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				_ = l.Release(ctx)
			}
		})
		time.Sleep(time.Millisecond)
	}
	all.Wait()
	return each, max(gap, time.Since(last))
}

func sum(each []int) (n int) {
	for _, i := range each {
		n += i
	}
	return n
}

// A client may never win, because its links are slower than its NodeTimeout or because it reaches
// only a minority. It does not keep the others from their turns.
func TestAcquireBesideAClientThatCannotWin(t *testing.T) {
	const d = 3 * time.Second
	for name, c := range map[string]struct {
		masters, reaches int   // of the masters, for the client that cannot win
		down             []int // for all clients
		fair             bool
	}{
		"slow links":                          {masters: 5, reaches: 5},
		"slow links, one master":              {masters: 1, reaches: 1},
		"slow links, fair":                    {masters: 5, reaches: 5, fair: true},
		"reaches two of five, one is down":    {masters: 5, reaches: 2, down: []int{4}},
		"reaches one of three, one is down":   {masters: 3, reaches: 1, down: []int{2}},
		"reaches two of four":                 {masters: 4, reaches: 2},
		"reaches one of two, and nobody both": {masters: 2, reaches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, c.masters, redlock.Config{}, func(b *virtual.Bed) {
				cfg := redlock.Config{Fair: c.fair}
				healthy := b.ReadyParties(3, cfg)
				sick := b.ReadyParty(cfg)
				for i, p := range healthy {
					jitterPaths(p, uint64(i), time.Millisecond)
				}
				b.Masters.Kill(c.down...)
				alone, _ := turns(b, healthy, d)

				if c.reaches == c.masters {
					random := rand.New(rand.NewPCG(1, 2))
					slowPaths(sick, random, 110*time.Millisecond, 200*time.Millisecond)
				}
				for i := c.reaches; i < c.masters; i++ {
					sick.Paths[i].Refuse(true)
					sick.Paths[i].Break()
				}
				with, gap := turns(b, append(slices.Clone(healthy), sick), d)
				assert.GreaterOrEqual(b, 2*sum(with[:3]), sum(alone), "%v with it, %v without", with, alone)
				assert.LessOrEqual(b, gap, 2*time.Second)
				assert.Zero(b, with[3])
				for i := range healthy {
					assert.GreaterOrEqual(b, 5*with[i], sum(with[:3]), "%v", with)
				}
				sick.Revive()
				time.Sleep(2 * time.Minute) // its messages have arrived, and its keys are over
				b.NoQueues()
			})
		})
	}
}

// A client that is in the queue already, and can win no more from then on, leaves the queue after
// one turn.
func TestAcquireBesideAClientThatCannotWinAnyMore(t *testing.T) {
	const d = 3 * time.Second
	for name, cfg := range map[string]redlock.Config{"as by default": {}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				healthy := b.ReadyParties(3, cfg)
				sick := b.ReadyParty(cfg)
				for i, p := range healthy {
					jitterPaths(p, uint64(i), time.Millisecond)
				}
				alone, _ := turns(b, healthy, d)

				l := b.Hold(healthy[0], time.Minute)
				w := sick.Wait(key, time.Minute)
				time.Sleep(time.Second)
				slowPaths(sick, rand.New(rand.NewPCG(1, 2)), 110*time.Millisecond, 200*time.Millisecond)
				b.Release(l)
				with, gap := turns(b, healthy, d)
				assert.GreaterOrEqual(b, 2*sum(with), sum(alone), "%v with it, %v without", with, alone)
				assert.LessOrEqual(b, gap, 2*time.Second)
				assert.False(b, w.Over())

				for _, path := range sick.Paths {
					path.Shape(nil)
				}
				b.Release(w.Hold())
			})
		})
	}
}

// The same client has its turns if it can win: with a NodeTimeout that is long enough.
func TestAcquireOverSlowLinksHasItsTurns(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		parties := b.ReadyParties(3, redlock.Config{})
		slow := b.ReadyParty(redlock.Config{NodeTimeout: time.Second})
		for i, p := range parties {
			jitterPaths(p, uint64(i), time.Millisecond)
		}
		slowPaths(slow, rand.New(rand.NewPCG(1, 2)), 110*time.Millisecond, 200*time.Millisecond)
		with, _ := turns(b, append(parties, slow), 10*time.Second)
		assert.GreaterOrEqual(b, with[3], 3, "%v", with)
	})
}

// A client that could not win comes back once it can, and takes its turns with the others.
func TestAcquireAfterAClientCouldNotWin(t *testing.T) {
	virtual.Run(t, 4, redlock.Config{}, func(b *virtual.Bed) {
		healthy := b.ReadyParties(3, redlock.Config{})
		sick := b.ReadyParty(redlock.Config{})
		for i, p := range append(slices.Clone(healthy), sick) {
			jitterPaths(p, uint64(i), time.Millisecond)
		}
		for i := 2; i < 4; i++ {
			sick.Paths[i].Refuse(true)
			sick.Paths[i].Break()
		}
		w := sick.Wait("another", time.Minute) // during all that time
		with, _ := turns(b, append(slices.Clone(healthy), sick), 6*time.Second)
		require.Zero(b, with[3])
		assert.False(b, w.Over())
		for i := 2; i < 4; i++ {
			sick.Paths[i].Refuse(false)
		}
		healed := time.Now()
		b.Release(w.Hold())
		assert.LessOrEqual(b, w.Got.Sub(healed), time.Second)
		with, _ = turns(b, append(slices.Clone(healthy), sick), 5*time.Second)
		assert.GreaterOrEqual(b, 6*with[3], sum(with), "%v", with)
	})
}

// slowPaths delays each message of the party by least to most.
func slowPaths(p *virtual.Party, random *rand.Rand, least, most time.Duration) {
	for _, path := range p.Paths {
		delays(path, rand.New(rand.NewPCG(random.Uint64(), 0)), least, most)
	}
}

// While a majority is down a wait reports that. Its probes find out when the majority is back: from
// then on another client holds the key.
func TestAcquireSaysWhyItWaits(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, time.Hour)
		w := p.Wait(key, time.Minute)
		b.Masters.Kill(0, 1, 2)
		time.Sleep(10 * time.Second)
		w.Cancel()
		<-w.Done
		assert.ErrorIs(b, w.Err, redlock.ErrNoQuorum, "it tried, as it cannot be woken")

		w = p.Wait(key, time.Minute)
		time.Sleep(10 * time.Second)
		w.Cancel()
		<-w.Done
		assert.ErrorIs(b, w.Err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, w.Err, redlock.ErrHeld)

		w = p.Wait(key, time.Minute)
		time.Sleep(10 * time.Second)
		require.NoError(b, b.Masters.Restart(0, 1, 2))
		b.Steal(key, time.Hour, 0, 1, 2)
		time.Sleep(10 * time.Second)
		w.Cancel()
		<-w.Done
		assert.ErrorIs(b, w.Err, redlock.ErrHeld)
		assert.False(b, errors.Is(w.Err, redlock.ErrNoQuorum))
		_ = l.Release(ctx)
	})
}

// With a minority down, a wait looks as often as with none: after a look at a node that does not
// answer it looks at the next one.
func TestAcquireLooksSkipNodesThatAreDown(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		for seed := range 10 { // the first node to look at is random
			p := b.ReadyParty(redlock.Config{})
			b.Steal(key, time.Hour, 0, 1, 2, 3, 4)
			w := p.Wait(key, ttl)
			time.Sleep(5 * time.Minute)
			down := []int{seed % 5, (seed/5 + seed + 1) % 5}
			b.Masters.Kill(down...)
			time.Sleep(time.Duration(seed) * 3 * time.Second)
			freed := time.Now()
			for i := range 5 {
				if !slices.Contains(down, i) {
					b.Redis(i).Del(key)
				}
			}
			l := w.Hold()
			assert.LessOrEqual(b, w.Got.Sub(freed), 15*time.Second+time.Second, "%v are down", down)
			_ = l.Release(ctx)
			require.NoError(b, b.Masters.Restart(down...))
			time.Sleep(3 * time.Minute)
		}
	})
}
