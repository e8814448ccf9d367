// Package idle measures the cost of callers that only wait, each for its own key, which
// another client holds all the time. The callers wait in their own process, so that its
// processor time is theirs. The holder acquires the keys before they start, does nothing
// meanwhile, and releases the keys when they have gone.
package idle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/bench/child"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
	"github.com/quorumlock/redlock/redlock"
)

// Plan is one measurement.
type Plan struct {
	Addrs   []string // host and port of each master
	Waiters int
	// Settle is how long the callers wait before the measurement. It excludes the first
	// attempts, and the beginning of a wait, which is more active.
	Settle time.Duration
	For    time.Duration // how long to measure
}

const (
	// ttl is the ttl of the held locks. They are not renewed, but outlive the measurement.
	ttl = 2 * time.Minute
	// patience is how long the masters have to remove all keys, including those that waiting
	// leaves.
	patience = time.Second
	// atOnce is how many locks are acquired or released at a time.
	atOnce = 64
)

func key(i int) string { return fmt.Sprintf("idle:%06d", i) }

// Measure runs the plan in another process of this program, which is started with flag and the
// plan and must then call [Child]. It returns an error unless the masters have no keys
// afterwards; they must have none before.
func Measure(ctx context.Context, set *masters.Set, flag string, p Plan) (found result.Idle, err error) {
	urls := make([]string, len(p.Addrs))
	for i, addr := range p.Addrs {
		urls[i] = "redis://" + addr
	}
	holder, err := redlock.Open(urls, redlock.Config{})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, holder.Close()) }()
	locks, err := hold(ctx, holder, p.Waiters)
	if err != nil {
		return found, err
	}
	found, err = wait(ctx, flag, p)
	for _, l := range locks {
		err = errors.Join(err, l.Release(ctx))
	}
	if err != nil {
		return found, err
	}
	if found.WereServed > 0 {
		err = fmt.Errorf("%d of %d waiters got a lock that somebody else held", found.WereServed, p.Waiters)
	}
	return found, errors.Join(err, set.AwaitEmpty(ctx, patience))
}

// hold acquires the locks that callers will wait for.
func hold(ctx context.Context, r *redlock.Redlock, n int) ([]*redlock.Lock, error) {
	locks := make([]*redlock.Lock, n)
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range locks {
		g.Go(func() (err error) {
			locks[i], err = r.TryAcquire(ctx, key(i), ttl)
			return err
		})
	}
	return locks, g.Wait()
}

// wait runs the waiting process and returns its result.
func wait(ctx context.Context, flag string, p Plan) (found result.Idle, err error) {
	c, err := child.Start(ctx, flag, p)
	if err != nil {
		return found, err
	}
	err = c.Hear(&found)
	return found, errors.Join(err, c.End())
}

// Child is the process that waits.
func Child(ctx context.Context, p Plan, parent *child.Pipe) error {
	spec, err := subject.Of(result.Quorumlock)
	if err != nil {
		return err
	}
	sent := new(subject.Sent)
	client, err := spec.Wait(subject.Target{Addrs: p.Addrs, Callers: p.Waiters, Sent: sent})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	found := result.Idle{Waiters: p.Waiters, Settled: p.Settle, For: p.For}

	waiting, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan bool, p.Waiters)
	for i := range p.Waiters {
		caller := client.Caller()
		go func() {
			err := caller.Acquire(waiting, key(i))
			if err == nil {
				_ = caller.Release(context.WithoutCancel(ctx))
			}
			served <- err == nil || waiting.Err() == nil // or it gave up, which is just as wrong
		}()
	}
	if err := pass(ctx, p.Settle); err != nil {
		return err
	}
	used, commands, start := child.ProcessorTime(), sent.Commands(), time.Now()
	if err := pass(ctx, p.For); err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	found.Cores = (child.ProcessorTime() - used).Seconds() / took
	found.PerSecond = float64(sent.Commands()-commands) / took / float64(p.Waiters)

	stop()
	for range p.Waiters {
		if <-served {
			found.WereServed++
		}
	}
	if err := client.Close(); err != nil {
		return err
	}
	return parent.Say(found)
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
