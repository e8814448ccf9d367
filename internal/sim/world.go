// Package sim runs whole clients against in-memory masters in virtual time, breaks
// what can break at the word of a seed, and judges what the clients believed.
//
// Nothing is faked but the network, the masters and time: a client is a
// redlock.Redlock on go-redis clients, with the options its users have.
package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/history"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Result is what became of a run.
type Result struct {
	Plan       Plan
	Events     []history.Event
	Violations []history.Violation // what must not have happened
	Excused    []Excuse            // what is known to happen, and why it did
	Calm       time.Duration       // when all work was done; what follows looks for what was left
	Granted    int                 // locks handed out
	Asked      int                 // acquisitions begun
}

// Fingerprint is the same for the same history.
func (r Result) Fingerprint() string {
	sum := sha256.New()
	for _, e := range r.Events {
		fmt.Fprintln(sum, e)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}

// Run simulates one seed. Its errors are about the config.
func Run(c Config) (Result, error) {
	p, err := Draw(c)
	if err != nil {
		return Result{}, err
	}
	return simulate(p), nil
}

// simulate runs a plan.
func simulate(p Plan) Result {
	w := &world{plan: p, values: map[string]holder{}, stored: map[storage]stored{}, fences: map[storage]int64{}, retentions: map[storage]time.Duration{}, proposed: map[proposal]bool{}, extended: map[string]bool{}, uncovered: map[holder]bool{}, questions: map[sight]time.Duration{}}
	w.plan.known = map[sight]time.Duration{}
	w.inBubble(w.run)

	p.known = w.plan.known
	r := Result{Plan: p, Events: w.history(), Calm: w.calmed} // history may find violations
	found := append(w.violations, history.Check(r.Events)...)
	found = append(found, history.CheckContexts(r.Events)...)
	found = append(found, w.checkTold(r.Events)...)
	found = append(found, p.checkStarved(r.Events, p.quiet)...)
	found = append(found, p.checkStuck(r.Events, p.calm(), w.end)...)
	found = append(found, p.checkProgress(r.Events, w.parts)...)
	r.judge(append(found, checkValid(r.Events)...))
	for _, e := range r.Events {
		switch e.Kind {
		case history.Asked:
			r.Asked++
		case history.Granted:
			r.Granted++
		}
	}
	return r
}

type world struct {
	plan    Plan
	start   time.Time
	log     history.Log
	masters *redlocktest.Masters
	clients []*client
	calmed  time.Duration
	end     time.Duration

	mu         sync.Mutex
	violations []history.Violation
	votes      []vote
	values     map[string]holder
	stored     map[storage]stored
	fences     map[storage]int64
	retentions map[storage]time.Duration // until when fences are kept
	proposed   map[proposal]bool
	extended   map[string]bool // values that were extended
	uncovered  map[holder]bool
	questions  map[sight]time.Duration // when a client last asked for the server
	rests      time.Duration           // until when nobody begins anything
	parts      [2]part                 // of the trial
}

// now is true time since the run began.
func (w *world) now() time.Duration { return time.Since(w.start) }

// report adds a violation of one of this package's rules.
func (w *world) report(v history.Violation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, v)
}

func (w *world) must(err error) {
	if err != nil {
		w.report(history.Violation{At: w.now(), Rule: Harness, Text: err.Error()})
	}
}

// maxMemory is far above what a run allocates, unless it spins.
const maxMemory = 2 << 30

// inBubble runs f in virtual time. A goroutine that is left behind, and a panic, are
// violations.
func (w *world) inBubble(f func()) {
	// What happens at the same instant is in the scheduler's hands. On one
	// processor it has one way to go, unless the collector, or a machine so busy
	// that it stops the process for 10 ms, takes the processor from a goroutine.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory)) // collects all the same
	defer func() {
		if e := recover(); e != nil {
			w.report(history.Violation{At: w.end, Rule: Goroutines, Text: fmt.Sprint(e)})
		}
		runtime.GC()
	}()
	align()
	synctest.Test(new(testing.T), func(t *testing.T) {
		defer func() {
			if e := recover(); e != nil {
				w.report(history.Violation{At: w.now(), Rule: Panics, Text: fmt.Sprintf("%v\n%s", e, debug.Stack())})
			}
		}()
		f()
	})
}

// run is what happens in the bubble.
func (w *world) run() {
	w.start = time.Now()
	w.masters = redlocktest.StartVirtual(tb{w}, w.plan.Nodes+w.plan.Spares)
	w.grownOld()
	for i := range w.plan.Nodes + w.plan.Spares {
		w.observe(i)
	}
	for i := range w.plan.Clients {
		w.clients = append(w.clients, w.newClient(i))
	}

	// Everybody works under faults,
	var faults, work sync.WaitGroup
	for _, n := range remaining(w.plan) {
		faults.Go(func() { w.inject(n, w.plan.Faults[n-1]) })
	}
	for _, c := range w.clients {
		plan := w.plan.Clients[c.index]
		if !plan.runs() {
			continue
		}
		for i := range plan.Workers {
			work.Go(func() {
				if plan.From > 0 {
					time.Sleep(plan.From + time.Duration(i))
				}
				w.work(c, i)
			})
		}
	}
	stopLooking := w.look()
	faults.Wait()
	work.Wait()
	stopLooking()
	stopCollecting := w.collect()

	// and must come to an end without.
	alive := w.alive()
	for _, c := range alive {
		for i := range w.plan.Clients[c.index].Workers {
			work.Go(func() { w.finish(c, i) })
		}
	}
	work.Wait()
	w.calmed = w.now()
	w.leftovers()
	for _, c := range alive {
		work.Go(func() { w.settle(c) })
	}
	work.Wait()
	w.calmFence(alive)
	w.calmLines(alive)
	for i, c := range alive {
		work.Go(func() { w.calm(c, i) })
	}
	work.Wait()
	w.trial()
	for _, c := range w.clients {
		work.Go(func() { w.must(c.lock.Close()) })
	}
	work.Wait()
	stopCollecting()
	time.Sleep(moment)
	w.noQueues("all have closed")
	w.end = w.now()
	w.must(w.masters.Close())
}

// alive lists the clients whose processes run until the end.
func (w *world) alive() (alive []*client) {
	for _, c := range w.clients {
		if w.plan.Clients[c.index].stays() {
			alive = append(alive, c)
		}
	}
	return alive
}

// collect frees memory from the end of the faults on: most of what a run allocates comes
// after it. It does so while everybody else is blocked, so that no goroutine loses the
// processor to the collector.
func (w *world) collect() (stop func()) {
	const every = 100 * time.Millisecond
	const garbage = 32 << 20
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var collected uint64
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			synctest.Wait()
			if metrics.Read(allocated); allocated[0].Value.Uint64()-collected > garbage {
				runtime.GC()
				align()
				collected = allocated[0].Value.Uint64()
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// tb is what redlocktest needs of a test.
type tb struct{ w *world }

func (tb) Helper()        {}
func (tb) Cleanup(func()) {} // run closes the masters itself
func (t tb) Fatalf(format string, args ...any) {
	t.w.report(history.Violation{Rule: Harness, Text: fmt.Sprintf(format, args...)})
}

// background is the context of whoever never gives up.
var background = context.Background()
