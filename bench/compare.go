package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorumlock/redlock/bench/idle"
	"github.com/quorumlock/redlock/bench/live"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/scenario"
)

// liveMasters is the number of masters in measurements of live locks and of waiters.
const liveMasters = 5

// compare starts masters and measures. Even with an error, which reports each wrong answer, it
// returns what it has measured.
func compare(ctx context.Context, o options) (run result.Run, err error) {
	cells := scenario.Cells(o.only)
	if o.quick {
		cells = scenario.Quick(cells)
	}
	plans, waits := plans(o), waits(o)
	if len(cells)+len(plans)+len(waits) == 0 {
		return run, fmt.Errorf("-only %q matches nothing", o.only)
	}
	began := time.Now()
	n := scenario.Nodes(cells)
	if len(plans)+len(waits) > 0 {
		n = max(n, liveMasters)
	}
	set, err := masters.Launch(n)
	if err != nil {
		return run, fmt.Errorf("%w; or: sh .ci/test, which installs it", err)
	}
	defer set.Stop()
	version, err := set.Version(ctx)
	if err != nil {
		return run, err
	}
	run = result.Run{
		When: began.UTC().Truncate(time.Second), Command: command(), Quick: o.quick,
		Machine: machine(version),
	}

	var problems []error
	problem := func(err error) {
		problems = append(problems, err)
		fmt.Fprintln(os.Stderr, "WRONG:", err)
	}
	runner := &scenario.Runner{
		Masters: set, Turn: o.turn, Cut: cut(o), Contender: contenderFlag, Progress: os.Stderr, Problem: problem,
	}
	rounds := o.rounds
	if len(cells) == 0 {
		rounds = 0
	}
	checked, err := runner.Check(ctx, cells)
	fmt.Fprintf(os.Stderr, "%d times checked that a subject locks: on a majority of the masters, with a ttl, against a second client, and with nothing left after the release\n", checked)
	for round := 0; round < rounds && err == nil; round++ {
		fmt.Fprintf(os.Stderr, "round %d of %d, after %v\n", round+1, rounds, time.Since(began).Round(time.Second))
		var samples []result.Sample
		samples, err = runner.Round(ctx, cells, round)
		run.Samples = append(run.Samples, samples...)
	}
	for _, p := range plans {
		if err != nil {
			break
		}
		p.Addrs = set.Addrs(liveMasters)
		fmt.Fprintf(os.Stderr, "live/locks=%d, ttl %v, for %v; after %v\n", p.Locks, p.TTL, p.For, time.Since(began).Round(time.Second))
		r, e := live.Measure(ctx, set, childFlag, p)
		switch {
		case e != nil && ctx.Err() != nil:
			err = e
		case e != nil:
			problem(fmt.Errorf("%d live locks: %w", p.Locks, e))
		default:
			run.Renewals = append(run.Renewals, r)
			if r.Lost > 0 {
				problem(fmt.Errorf("%d of %d live locks were lost", r.Lost, r.Locks))
			}
		}
	}
	for _, p := range waits {
		if err != nil {
			break
		}
		p.Addrs = set.Addrs(liveMasters)
		fmt.Fprintf(os.Stderr, "contended/idle=%d, for %v; after %v\n", p.Waiters, p.For, time.Since(began).Round(time.Second))
		found, e := idle.Measure(ctx, set, waiterFlag, p)
		switch {
		case e != nil && ctx.Err() != nil:
			err = e
		case e != nil:
			problem(fmt.Errorf("%d waiters: %w", p.Waiters, e))
		default:
			run.Idles = append(run.Idles, found)
		}
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "%d turns after which the masters were empty, or what stayed is told above; %d wrong answers; %v\n", len(run.Samples), len(problems), time.Since(began).Round(time.Second))
	}
	return run, errors.Join(append(problems, err)...)
}

// plans returns the measurements of live locks that -only matches. Each is made once.
func plans(o options) (plans []live.Plan) {
	ttl, hold, counts := 30*time.Second, time.Minute, []int{1_000, 10_000, 100_000}
	if o.quick {
		ttl, hold, counts = 6*time.Second, 5*time.Second, counts[:1]
	}
	for _, n := range counts {
		if o.only.MatchString(fmt.Sprintf("live/locks=%d", n)) {
			plans = append(plans, live.Plan{Locks: n, TTL: ttl, For: hold})
		}
	}
	return plans
}

// waits returns the measurements of idle waiters that -only matches. Each is made once.
func waits(o options) (plans []idle.Plan) {
	p := idle.Plan{Waiters: 1000, Settle: 20 * time.Second, For: time.Minute}
	if o.quick {
		p.Settle, p.For = time.Second, 2*time.Second
	}
	if o.only.MatchString(fmt.Sprintf("contended/idle=%d", p.Waiters)) {
		plans = append(plans, p)
	}
	return plans
}

// cut returns the longest turn with a fault. With go-redis's defaults, a cycle takes two read
// timeouts of 5 s when a master hangs; -quick does not wait for that.
func cut(o options) time.Duration {
	if o.quick {
		return time.Second
	}
	return max(12*time.Second, 2*o.turn)
}
