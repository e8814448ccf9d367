// Package load makes callers acquire and release locks, one after the other
// without a pause, each with keys of its own, and records how long that takes.
//
// What the generator itself does for a cycle is three readings of the clock and
// two counts, with no allocation, so that what is measured is the subject's.
package load

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// Turn is one measurement of one subject. Its callers warm up, stop, and start
// together.
type Turn struct {
	Number  int // makes the keys different from those of other turns
	Callers int
	// Warm is how long callers warm up at least. Each makes two cycles in any
	// case, which opens its connections and loads the scripts.
	Warm time.Duration
	// For is the time after which nobody starts another cycle. What has been
	// started is finished.
	For time.Duration
	// Limit is when the turn is cut: a cycle that has not ended by then has
	// failed. Defaults to For and half a minute.
	Limit time.Duration
	// Cycles, if above 0, replaces For: so many are made altogether.
	Cycles int
	// Begin, if set, is called when all have warmed up and nothing is under way.
	Begin func() error
	// End, if set, is called when all callers have finished or at Limit. It
	// must make calls return that hang.
	End func()
}

// Outcome is what a turn has brought.
type Outcome struct {
	Cycles, Errors int
	PerSecond      float64   // cycles, the sum of what each caller did in its own time
	Cycle, Acquire Histogram // of the cycles
	Allocs         float64   // heap objects of the whole process for each cycle
	Err            error     // one of those that Errors counts
}

// Sample is the outcome as it is stored.
func (o *Outcome) Sample(cell result.Cell, name result.Subject, round int) result.Sample {
	sample := result.Sample{
		Cell: cell, Subject: name, Round: round,
		Cycles: o.Cycles, PerSecond: o.PerSecond, Errors: o.Errors,
		Cycle: o.Cycle.Latency(), Acquire: o.Acquire.Latency(), Allocs: o.Allocs,
	}
	sample.Cycle.Quantiles = nil // no plot has them; they would be half of what is stored
	return sample
}

// shards bounds the number of histograms. Callers share them, as one for each of
// a thousand callers would be megabytes of heap, by which the pace of garbage
// collections is set: the harness would make the peers faster.
const shards = 16

// generator is a turn under way.
type generator struct {
	turn  Turn
	keys  keys
	stop  atomic.Bool
	quota atomic.Int64 // cycles that may still be started, if turn.Cycles is set
	start time.Time
	warm  sync.WaitGroup
	begin chan struct{} // closed at the start
	works []work
	hists [shards]struct{ cycle, acquire Histogram }
}

// work is one caller's count. It is written once, when the caller ends.
type work struct {
	cycles, errors int
	took           time.Duration // until its last cycle ended
	err            error
	cold           error // it could not warm up
}

// Run makes a turn. It returns when all callers have ended. The error says that
// nothing could be measured; cycles that fail are counted in the outcome.
func Run(ctx context.Context, l subject.Locker, t Turn) (*Outcome, error) {
	if t.Limit == 0 {
		t.Limit = t.For + 30*time.Second
	}
	if t.Cycles > 0 {
		t.For, t.Limit = time.Hour, time.Hour
	}
	g := &generator{
		turn:  t,
		keys:  newKeys(t.Number, t.Callers),
		begin: make(chan struct{}),
		works: make([]work, t.Callers),
	}
	g.quota.Store(int64(t.Cycles))
	defer context.AfterFunc(ctx, func() { g.stop.Store(true) })()

	var callers sync.WaitGroup
	g.warm.Add(t.Callers)
	for i := range t.Callers {
		callers.Go(func() { g.caller(i, l.Caller()) })
	}
	g.warm.Wait()
	err := g.cold(ctx)
	if err == nil && t.Begin != nil {
		err = t.Begin()
	}
	if err != nil {
		g.stop.Store(true)
		close(g.begin)
		callers.Wait()
		return nil, err
	}

	var before, after runtime.MemStats
	runtime.GC() // the garbage of the warm-up is not this turn's
	runtime.ReadMemStats(&before)
	g.start = time.Now()
	close(g.begin)

	ended := make(chan struct{})
	go func() { callers.Wait(); close(ended) }()
	limit := time.NewTimer(t.Limit)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
	case <-ctx.Done():
	}
	g.stop.Store(true)
	if t.End != nil {
		t.End()
	}
	<-ended
	runtime.ReadMemStats(&after)
	return g.outcome(after.Mallocs - before.Mallocs), ctx.Err()
}

// cold is why a caller could not warm up.
func (g *generator) cold(ctx context.Context) error {
	for _, w := range g.works {
		if w.cold != nil {
			return w.cold
		}
	}
	return ctx.Err()
}

func (g *generator) outcome(mallocs uint64) *Outcome {
	o := new(Outcome)
	for _, w := range g.works {
		o.Cycles += w.cycles
		o.Errors += w.errors
		o.PerSecond += float64(w.cycles) / w.took.Seconds()
		if w.err != nil {
			o.Err = w.err
		}
	}
	for i := range g.hists {
		o.Cycle.Add(&g.hists[i].cycle)
		o.Acquire.Add(&g.hists[i].acquire)
	}
	if o.Cycles > 0 {
		o.Allocs = float64(mallocs) / float64(o.Cycles)
	}
	return o
}

// errCut is what became of a cycle that had not ended at the turn's limit.
var errCut = errors.New("had not ended when the turn was cut")

// Bulk makes a turn of the ceiling, which has no callers.
func Bulk(c *subject.Ceiling, t Turn) (*Outcome, error) {
	if _, _, err := c.Run(t.Warm); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	runtime.GC()
	o := new(Outcome)
	var err error
	o.Cycles, o.PerSecond, err = c.Run(t.For)
	return o, err
}
