package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// expiry is the ttl of all locks. It is redsync's default, and much longer than any lock is
// held here.
const expiry = 8 * time.Second

// locker takes a key, and returns a function that releases it.
type locker func(ctx context.Context) (release func(context.Context) error, err error)

// contender takes a key, holds it, releases it, and pauses, until its context ends.
type contender struct {
	take        locker
	hold, pause time.Duration
	tally       *tally
	key         *place
}

// place is a key that contenders share. It counts how often two of them are inside.
type place struct {
	inside atomic.Int32
	twice  atomic.Int64
}

// tally counts the locks of some contenders.
type tally struct {
	mu      sync.Mutex
	grants  []time.Time
	longest time.Duration // wait for a lock, or until the end without one
	failed  int           // releases
}

func (t *tally) granted(at time.Time, waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.grants = append(t.grants, at)
	t.longest = max(t.longest, waited)
}

func (t *tally) gaveUp(waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest = max(t.longest, waited)
}

func (t *tally) notReleased() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed++
}

// count returns the number of locks from one time to another.
func (t *tally) count(from, to time.Time) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range t.grants {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// gap returns the longest time without a lock of any of the tallies.
func gap(from, to time.Time, tallies ...*tally) time.Duration {
	var all []time.Time
	for _, t := range tallies {
		t.mu.Lock()
		for _, at := range t.grants {
			if !at.Before(from) && at.Before(to) {
				all = append(all, at)
			}
		}
		t.mu.Unlock()
	}
	slices.SortFunc(all, time.Time.Compare)
	longest, last := time.Duration(0), from
	for _, at := range append(all, to) {
		longest, last = max(longest, at.Sub(last)), at
	}
	return longest
}

// run returns when ctx has ended and the lock is released.
func (c *contender) run(ctx context.Context) {
	began := time.Now()
	for {
		release, err := c.take(ctx)
		now := time.Now()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			c.tally.gaveUp(now.Sub(began))
			return
		default: // its tries are used up; it goes on waiting
			contend.Pause(ctx, time.Millisecond)
			continue
		}
		c.tally.granted(now, now.Sub(began))
		if c.key.inside.Add(1) != 1 {
			c.key.twice.Add(1)
		}
		contend.Pause(ctx, c.hold)
		c.key.inside.Add(-1)
		if release(context.WithoutCancel(ctx)) != nil {
			c.tally.notReleased()
		}
		if contend.Pause(ctx, c.pause); ctx.Err() != nil {
			return
		}
		began = time.Now()
	}
}

// start runs contenders until stop is called, which returns when they have ended.
func start(ctx context.Context, all ...*contender) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var g sync.WaitGroup
	for _, c := range all {
		g.Go(func() { c.run(ctx) })
	}
	return func() { cancel(); g.Wait() }
}

// alone returns an error if two contenders were inside at the same time.
func (p *place) alone() error {
	if n := p.twice.Load(); n > 0 {
		return fmt.Errorf("%d times there were two holders", n)
	}
	return nil
}

// acquires waits for a key with Acquire.
func acquires(r *redlock.Redlock, key string) locker {
	return func(ctx context.Context) (func(context.Context) error, error) {
		l, err := r.Acquire(ctx, key, expiry)
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	}
}

// open returns a Redlock on these addresses, with its own clients.
func open(addrs []string, cfg redlock.Config) (*redlock.Redlock, error) {
	urls := make([]string, len(addrs))
	for i, a := range addrs {
		urls[i] = "redis://" + a
	}
	return redlock.Open(urls, cfg)
}

// addresses returns the addresses of the servers.
func addresses(servers []*redisserver.Server) (addrs []string) {
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

func stopAll(servers []*redisserver.Server) {
	var g errgroup.Group
	for _, s := range servers {
		g.Go(func() error { s.Stop(); return nil })
	}
	_ = g.Wait()
}

// closeAll closes Redlocks at the same time, because one that cannot reach its masters takes a
// while.
func closeAll(all []*redlock.Redlock) error {
	errs := make([]error, len(all))
	var g sync.WaitGroup
	for i, r := range all {
		g.Go(func() { errs[i] = r.Close() })
	}
	g.Wait()
	return errors.Join(errs...)
}
