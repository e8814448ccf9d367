// Package load makes callers acquire and release locks, one after the other without a pause,
// each with its own keys, and records how long that takes.
//
// For each cycle, the generator itself only reads the clock three times and increments two
// counts, without an allocation. The measured costs are therefore the subject's.
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

// Turn is one measurement of one subject. Its callers warm up, stop, and start together.
type Turn struct {
	Number  int // makes the keys differ from those of other turns
	Callers int
	// Warm is the shortest time of the warm-up. Each caller makes at least two cycles, which
	// open its connections and load the scripts.
	Warm time.Duration
	// For is the time after which no caller starts another cycle. Cycles under way are
	// finished.
	For time.Duration
	// Limit is the time at which the turn is cut: a cycle that has not ended by then has
	// failed. The default is For plus half a minute.
	Limit time.Duration
	// Cycles, if above 0, replaces For: it is the number of cycles that all callers make
	// together.
	Cycles int
	// Begin, if set, is called when all callers have warmed up and no cycle is under way.
	Begin func() error
	// End, if set, is called when all callers have finished, or at Limit. It must make hanging
	// calls return.
	End func()
}

// Outcome holds the figures of a turn.
type Outcome struct {
	Cycles, Errors int
	PerSecond      float64   // cycles, as the sum over the callers' own rates
	Cycle, Acquire Histogram // of the cycles
	Allocs         float64   // heap objects of the whole process for each cycle
	Err            error     // one of the errors that Errors counts
}

// Sample returns the outcome in the form in which it is stored.
func (o *Outcome) Sample(cell result.Cell, name result.Subject, round int) result.Sample {
	sample := result.Sample{
		Cell: cell, Subject: name, Round: round,
		Cycles: o.Cycles, PerSecond: o.PerSecond, Errors: o.Errors,
		Cycle: o.Cycle.Latency(), Acquire: o.Acquire.Latency(), Allocs: o.Allocs,
	}
	sample.Cycle.Quantiles = nil // no plot needs them, and they would be half of the stored data
	return sample
}

// shards is the number of histograms, which callers share. One for each of a thousand callers
// would be megabytes of heap. A larger heap means fewer garbage collections, so the harness
// would make the other libraries faster.
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

// work is one caller's result. It is written once, when the caller ends.
type work struct {
	cycles, errors int
	took           time.Duration // until its last cycle ended
	err            error
	cold           error // why it could not warm up
}

// Run makes a turn. It returns when all callers have ended. It returns an error if nothing
// could be measured; cycles that fail are counted in the outcome.
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
	runtime.GC() // the garbage of the warm-up must not count
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

// cold returns why a caller could not warm up.
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

// errCut is the error of a cycle that had not ended at the turn's limit.
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
