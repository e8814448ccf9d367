// Command observe measures what Config.Observer costs:
//
//	go -C bench run ./observe                 20 turns of each, a minute
//	go -C bench run ./observe -turns 5 -callers 1
//
// It starts five redis-server processes on the loopback interface. Callers acquire and release
// locks of their own without a pause, with a Redlock without an Observer, with one that only
// counts, and with the metrics of package redlockotel. The order changes from turn to turn. A ratio is
// the median of the ratios within a turn, so that other work of the machine affects both of its sides.
// The variant without an Observer is measured twice: the ratio of the second to the first shows what
// the machine makes of equal things. Processor time is this process', without the masters'.
//
// The exit status is 1 if something does not run. It does not depend on the figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/quorumlock/redlock/bench/load"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/subject"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlockotel"
)

// nodes is the number of masters.
const nodes = 5

func main() {
	turns := flag.Int("turns", 20, "how often everything is measured")
	callers := flag.Int("callers", 128, "how many goroutines lock at the same time")
	turn := flag.Duration("turn", time.Second, "how long a turn is")
	flag.Parse()
	if flag.NArg() > 0 || *turns < 1 || *callers < 1 {
		fmt.Fprintln(os.Stderr, "observe: takes no arguments, and at least one turn and one caller")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills this process; the servers end with it
	if err := measure(ctx, *turns, *callers, *turn, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "observe:", err)
		os.Exit(1)
	}
}

// counter is an Observer that only counts.
type counter struct {
	redlock.NoObserver
	began, ended, locks, votes count
}

// count shares no cache line with another, as the counters of a metrics library do not.
type count struct {
	atomic.Int64
	_ [56]byte
}

func (c *counter) AcquireBegan(ctx context.Context, _ redlock.Operation) context.Context {
	c.began.Add(1)
	return ctx
}
func (c *counter) OperationEnded(_ context.Context, r redlock.OperationResult) {
	c.ended.Add(int64(r.Count))
}
func (c *counter) LockEnded(context.Context, redlock.LockEnd)      { c.locks.Add(1) }
func (c *counter) NodeVoted(_ context.Context, v redlock.NodeVote) { c.votes.Add(int64(v.Count)) }

// variant is one configuration that is measured.
type variant struct {
	name string
	subject.Spec

	perSecond, cpu, allocs []float64
	goroutines             int
}

func measure(ctx context.Context, turns, callers int, turn time.Duration, out io.Writer) error {
	set, err := masters.Launch(nodes)
	if err != nil {
		return err
	}
	defer set.Stop()
	metrics, err := redlockotel.New(
		redlockotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))),
		redlockotel.WithTracerProvider(noop.NewTracerProvider()))
	if err != nil {
		return err
	}
	observed := func(name string, observer redlock.Observer) *variant {
		return &variant{name: name, Spec: subject.WithConfig(redlock.Config{Observer: observer})}
	}
	variants := []*variant{
		observed("none", nil),
		observed("none again", nil),
		observed("counts", &counter{}),
		observed("redlockotel", metrics),
	}
	target := subject.Target{Addrs: set.Addrs(nodes), Callers: callers}
	for n := range turns + 1 {
		for i := range variants {
			v := variants[(n+i)%len(variants)]
			if err := v.take(ctx, target, load.Turn{Number: n*len(variants) + i, Callers: callers, Warm: turn / 5, For: turn}); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
		if n == 0 { // the first turn warms up
			for _, v := range variants {
				v.perSecond, v.cpu, v.allocs = nil, nil, nil
			}
		}
	}
	fmt.Fprintf(out, "%d callers, %d masters, %d turns of %v\n\n", callers, nodes, turns, turn)
	fmt.Fprintf(out, "%-12s %10s %8s %10s %8s %8s %10s\n", "Observer", "cycles/s", "ratio", "cpu µs", "ratio", "allocs", "goroutines")
	for _, v := range variants {
		fmt.Fprintf(out, "%-12s %10.0f %8.3f %10.2f %8.3f %8.1f %10d\n", v.name, median(v.perSecond), ratio(v.perSecond, variants[0].perSecond),
			median(v.cpu), ratio(v.cpu, variants[0].cpu), median(v.allocs), v.goroutines)
	}
	return nil
}

// take makes one turn with a Redlock of its own.
func (v *variant) take(ctx context.Context, target subject.Target, t load.Turn) error {
	before := runtime.NumGoroutine()
	locks, err := v.Open(target)
	if err != nil {
		return err
	}
	defer locks.Close()
	var start time.Duration
	t.Begin = func() error {
		start = used()
		v.goroutines = runtime.NumGoroutine() - before - t.Callers
		return nil
	}
	outcome, err := load.Run(ctx, locks, t)
	if err != nil {
		return err
	}
	if outcome.Errors > 0 {
		return fmt.Errorf("%d cycles failed: %w", outcome.Errors, outcome.Err)
	}
	v.perSecond = append(v.perSecond, outcome.PerSecond)
	v.cpu = append(v.cpu, float64((used()-start).Nanoseconds())/1000/float64(outcome.Cycles))
	v.allocs = append(v.allocs, outcome.Allocs)
	return nil
}

// used returns the processor time that this process has used.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ratio returns the median of the ratios within a turn.
func ratio(a, b []float64) float64 {
	all := make([]float64, len(a))
	for i := range all {
		all[i] = a[i] / b[i]
	}
	return median(all)
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
