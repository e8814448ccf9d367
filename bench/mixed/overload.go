package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

const (
	overloadMasters = 5
	overloadHung    = 3 // a majority
	// probe is the pause between two tries of a free key.
	probe = 50 * time.Millisecond
	// lot is how many waits begin together; a pause of probe follows each lot.
	lot = 100
	// held is longer than any run.
	held = time.Hour
)

// overload makes one Redlock wait for many keys, hangs a majority of its masters, and then
// measures how fast the Redlock acquires free keys.
func overload(ctx context.Context, o options) (err error) {
	progress("overload")
	servers, err := redisserver.Launch(overloadMasters)
	if err != nil {
		return err
	}
	defer stopAll(servers)
	holder, err := open(addresses(servers), redlock.Config{NodeTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, holder.Close()) }()
	ours, err := open(addresses(servers), redlock.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()

	var g errgroup.Group
	g.SetLimit(500)
	for i := range o.waits {
		g.Go(func() error {
			_, err := holder.TryAcquire(ctx, waitedFor(i), held)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	waiting, enough := context.WithCancel(ctx)
	var waits sync.WaitGroup
	for i := range o.waits {
		if i%lot == 0 { // all at once would be an overload of its own
			contend.Pause(ctx, probe)
		}
		waits.Go(func() {
			if l, err := ours.Acquire(waiting, waitedFor(i), held); err == nil {
				_ = l.Release(ctx)
			}
		})
	}
	defer func() { enough(); waits.Wait() }()

	w := &overloadWatch{servers: servers, ours: ours, quiet: float64(o.waits)/10 + 2*float64(time.Second/probe)}
	for _, s := range servers {
		w.clients = append(w.clients, s.Client(func(c *redis.Options) { c.ReadTimeout = time.Hour }))
	}
	// The waits are quiet when each has a queue entry and has looked a few times.
	if err := w.awaitQuiet(ctx, o.watch); err != nil {
		return err
	}
	before, err := w.second(ctx)
	if err != nil {
		return err
	}
	for _, s := range servers[overloadMasters-overloadHung:] {
		if err := s.Pause(); err != nil {
			return err
		}
	}
	contend.Pause(ctx, o.freeze)
	for _, s := range servers[overloadMasters-overloadHung:] {
		if err := s.Resume(); err != nil {
			return err
		}
	}
	after, err := w.after(ctx, o.watch)
	if err != nil {
		return err
	}

	t := newTable(o.out, "After an overload",
		fmt.Sprintf("One Redlock waits for %d keys that another holds. %d of %d masters hang for %v. Afterwards the same Redlock tries keys that nobody has, one after the other, with pauses of %v. *Scripts* are those that the busiest master runs.",
			o.waits, overloadHung, overloadMasters, o.freeze, probe),
		"after the masters go on", "scripts a second", "free keys tried", "not acquired", "median", "slowest")
	before.print(t, "before the hang")
	for i, until := range periods {
		since := time.Duration(0)
		if i > 0 {
			since = periods[i-1]
		}
		if all := join(after, since, until); all.tried > 0 {
			all.print(t, fmt.Sprintf("%v to %v", since, until))
		}
	}
	t.end()
	var failed, busy time.Duration
	for _, s := range after {
		if s.failed > 0 {
			failed = s.until
		}
		if s.scripts > w.quiet {
			busy = s.until
		}
	}
	last := after[len(after)-1]
	fmt.Fprintf(o.out, "The last key that nobody had and that was not acquired: %s. The last second with more than %.0f scripts on a master: %s.\n\n",
		ending(failed, last.until), w.quiet, ending(busy, last.until))
	return ctx.Err()
}

// periods are the ends of the periods for which figures are summed up.
var periods = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, time.Hour,
}

// ending says when something was last seen.
func ending(at, last time.Duration) string {
	switch at {
	case 0:
		return "none"
	case last:
		return fmt.Sprintf("still after %s, when nobody looked any more", cell(last))
	}
	return "after " + cell(at)
}

func waitedFor(i int) string { return fmt.Sprintf("held:%d", i) }

// overloadWatch observes the masters, and tries free keys.
type overloadWatch struct {
	servers []*redisserver.Server
	clients []*redis.Client
	ours    *redlock.Redlock
	quiet   float64 // scripts a second on a quiet master, at most: some looks, and releases
	keys    atomic.Int64
}

// overloadSecond is what was observed in a second, or longer if a try took longer.
type overloadSecond struct {
	until         time.Duration // since the masters go on
	scripts       float64
	tried, failed int
	took          []time.Duration
}

// join sums up the seconds that ended in a period.
func join(all []overloadSecond, since, until time.Duration) (sum overloadSecond) {
	n := 0
	for _, s := range all {
		if s.until <= since || s.until > until {
			continue
		}
		n++
		sum.scripts += s.scripts
		sum.tried += s.tried
		sum.failed += s.failed
		sum.took = append(sum.took, s.took...)
	}
	sum.scripts /= float64(max(n, 1))
	return sum
}

func (s overloadSecond) print(t *table, when string) {
	slices.Sort(s.took)
	t.row(when, s.scripts, s.tried, s.failed, s.took[len(s.took)/2], s.took[len(s.took)-1])
}

// second observes for a second.
func (w *overloadWatch) second(ctx context.Context) (s overloadSecond, err error) {
	before, err := w.scripts(ctx)
	if err != nil {
		return s, err
	}
	began := time.Now()
	for time.Since(began) < time.Second && ctx.Err() == nil {
		at := time.Now()
		l, err := w.ours.TryAcquire(ctx, fmt.Sprintf("free:%d", w.keys.Add(1)), expiry)
		s.took = append(s.took, time.Since(at))
		s.tried++
		if err != nil {
			s.failed++
		} else {
			go func() { _ = l.Release(ctx) }()
		}
		contend.Pause(ctx, probe)
	}
	after, err := w.scripts(ctx)
	if err != nil {
		return s, err
	}
	took := time.Since(began).Seconds()
	for i := range after {
		s.scripts = max(s.scripts, float64(after[i]-before[i])/took)
	}
	return s, ctx.Err()
}

// after observes until all has been well for five seconds.
func (w *overloadWatch) after(ctx context.Context, most time.Duration) (all []overloadSecond, err error) {
	began, well := time.Now(), 0
	for time.Since(began) < most && well < 5 {
		s, err := w.second(ctx)
		if err != nil {
			return all, err
		}
		s.until = time.Since(began)
		all = append(all, s)
		if well++; s.failed > 0 || s.scripts > w.quiet {
			well = 0
		}
	}
	return all, nil
}

func (w *overloadWatch) awaitQuiet(ctx context.Context, most time.Duration) error {
	began := time.Now()
	for well := 0; well < 3; {
		s, err := w.second(ctx)
		if err != nil {
			return err
		}
		if well++; s.failed > 0 || s.scripts > w.quiet {
			well = 0
		}
		if time.Since(began) > most {
			return fmt.Errorf("the waits are not quiet after %v: %.0f scripts a second on a master", most, s.scripts)
		}
	}
	return nil
}

var evalsha = regexp.MustCompile(`cmdstat_(?:evalsha|eval):calls=(\d+)`)

// scripts returns how many scripts each master has run.
func (w *overloadWatch) scripts(ctx context.Context) ([]int64, error) {
	all := make([]int64, len(w.clients))
	for i, c := range w.clients {
		text, err := c.Info(ctx, "commandstats").Result()
		if err != nil {
			return nil, err
		}
		for _, m := range evalsha.FindAllStringSubmatch(text, -1) {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				return nil, err
			}
			all[i] += n
		}
	}
	return all, nil
}
