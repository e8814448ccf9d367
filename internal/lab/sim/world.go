// Package sim is the fault lab: it runs whole clients of the library against in-memory
// masters in virtual time, injects faults, and judges what the clients believed. Only the
// network, the masters and time are fake: a client is a redlock.Redlock on go-redis
// clients, with the options that users have. docs/testing.md lists the faults and the
// rules.
//
// [Run] simulates one seed:
//
//   - [Draw] draws a [Plan] from the seed: nodes, clients, options, faults.
//   - world.run acts it out in a testing/synctest bubble. Clients work under the faults.
//     After the faults each client takes every lock once more, and each operation is
//     checked where nothing fails. Some runs end with a trial, in which some clients are
//     sick for long.
//   - Clients and servers log what they do as events of package history.
//   - simulate applies the rules to the events. Result.judge excuses violations that a
//     fault beyond Redlock's promises explains.
//
// Where to look: plan.go, draw.go and kind.go for plans and kinds of faults; fault.go and
// moved.go for the effects of faults; client.go, work.go and path.go for clients and their
// network; operation.go and votes.go for the log of the servers; calm.go for operations
// without faults; trial.go for trials; rules.go for the rules; told.go, starved.go,
// stuck.go, progress.go and leftover.go for checks of rules; excuse.go for excuses;
// seeds.go and shrink.go for many runs and smaller ones.
package sim

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/quorum"
)

// Result is the outcome of a run.
type Result struct {
	Plan       Plan
	Events     []history.Event
	Violations []history.Violation // those that nothing excuses
	Excused    []Excuse            // those that a fault beyond Redlock's promises explains
	Calm       time.Duration       // when all work was done; later events are of checks
	Granted    int                 // locks handed out
	Asked      int                 // acquisitions begun
}

// Fingerprint returns a digest of the history, which is the same for the same history.
func (r Result) Fingerprint() string { return history.Fingerprint(r.Events) }

// Run simulates one seed. It returns an error only if the config is invalid.
func Run(c Config) (Result, error) {
	p, err := Draw(c)
	if err != nil {
		return Result{}, err
	}
	return simulate(p, nil), nil
}

// Show is Run for a viewer: tell gets what can be seen, as it happens, and in the end the violations and
// the verdict. A run that is watched makes another history than one that is not, as the scheduler has
// more to do.
func Show(c Config, tell func(time.Duration, scene.Line)) (Result, error) {
	p, err := Draw(c)
	if err != nil {
		return Result{}, err
	}
	tell(0, beginOf(p))
	r := simulate(p, tell)
	for _, v := range r.Violations {
		tell(v.At, violated(v, "", ""))
	}
	for _, e := range r.Excused {
		tell(e.At, violated(e.Violation, fmt.Sprintf("Redlock does not promise this under the fault %q.", e.Kind), ""))
	}
	tell(r.Calm, scene.Over{Fingerprint: r.Fingerprint(), Asked: r.Asked, Granted: r.Granted, Checked: checked})
	return r, nil
}

// checked says what the rules are, for a viewer.
var checked = []string{
	"No two clients held a lock at once.",
	"Fencing tokens grew.",
	"Some order of all operations fits their results.",
	"A lock's context was done before the next holder got the key.",
	"A majority had the key of each lock for as long as it was valid.",
	"Everybody got the lock in the end, and nothing was left behind.",
}

// beginOf returns the first line of a seed's run.
func beginOf(p Plan) scene.Begin {
	b := scene.Begin{
		Mode: "sim", Nodes: p.Nodes, Clients: len(p.Clients), Quorum: quorum.Size(p.Nodes),
		Fencing: p.Fencing, Guard: p.Guard, Fair: p.Fair, Seed: fmt.Sprint(p.Config.Seed), Command: p.Config.Command("--exact"),
		Text: fmt.Sprintf("seed %d: %d masters, %d clients, faults for %v: %s", p.Config.Seed, p.Nodes, len(p.Clients), p.For, names(p.Kinds)),
	}
	for _, c := range p.Clients {
		for _, ttl := range c.TTLs { // a client that never runs has none
			b.TTL = max(b.TTL, ttl)
		}
		b.Timeout = max(b.Timeout, c.NodeTimeout)
	}
	return b
}

func newWorld(p Plan) *world {
	w := &world{plan: p, values: map[string]holder{}, heirs: map[string][]heir{}, stored: map[storage]stored{}, fences: map[storage]int64{}, retentions: map[storage]time.Duration{}, proposed: map[proposal]bool{}, extended: map[string]bool{}, uncovered: map[holder]bool{}, questions: map[sight]time.Duration{}}
	w.plan.known = map[sight]time.Duration{}
	return w
}

// simulate runs a plan and judges its history. tell gets what can be seen of it; nil: nobody watches.
func simulate(p Plan, tell func(time.Duration, scene.Line)) Result {
	w := newWorld(p)
	w.show = newShow(w, tell)
	w.inBubble(w.run)

	p.known = w.plan.known
	r := Result{Plan: p, Events: w.history(), Calm: w.calmed} // w.history may find violations
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
	masters *inmemory.Masters
	clients []*client
	former  []*client // whose processes were started again
	show    *show     // nil: nobody watches
	played  bool      // a person decides what fails, which may be beyond what Redlock promises
	slots   int       // of the semaphore that a scenario has instead of the lock; 0: it has the lock
	calmed  time.Duration
	end     time.Duration

	// mu is taken before a client's mu, and both before the show's, which is taken last. A path's mu is
	// taken before the show's, and with no other. No mutex is held while a server is asked.
	mu         sync.Mutex
	violations []history.Violation
	votes      []vote
	values     map[string]holder // the first owner of each
	heirs      map[string][]heir // the later ones
	stored     map[storage]stored
	fences     map[storage]int64
	retentions map[storage]time.Duration // until when fences are kept
	proposed   map[proposal]bool
	extended   map[string]bool // values of locks that were extended
	uncovered  map[holder]bool
	questions  map[sight]time.Duration // when a client last asked for the server's identity
	rests      time.Duration           // until when nobody begins anything
	parts      [2]part                 // of the trial
}

// now returns the true time since the run began.
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
	// The scheduler decides the order of things that happen at the same instant. On one
	// processor it always decides alike, unless the collector takes the processor from a
	// goroutine, or a machine so busy that it stops the process for 10 ms.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory)) // above this limit it collects all the same
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
	w.masters = inmemory.StartVirtual(tb{w}, w.plan.Nodes+w.plan.Spares)
	w.grownOld()
	for i := range w.plan.Nodes + w.plan.Spares {
		w.observe(i)
	}
	for i := range w.plan.Clients {
		w.clients = append(w.clients, w.newClient(i))
	}

	// All clients work under faults.
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

	// Then nothing fails, and everything must come to an end.
	alive := w.alive()
	for _, c := range alive {
		for i := range w.plan.Clients[c.index].Workers {
			work.Go(func() { w.finish(c, i) })
		}
	}
	work.Wait()
	w.calmed = w.now()
	w.show.end()
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

// collect frees memory from the end of the faults on, as most of what a run allocates comes
// after it. It does so while all other goroutines are blocked, so that none of them loses
// the processor to the collector.
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

// tb is what inmemory needs of a test.
type tb struct{ w *world }

func (tb) Helper()        {}
func (tb) Cleanup(func()) {} // run closes the masters itself
func (t tb) Fatalf(format string, args ...any) {
	t.w.report(history.Violation{Rule: Harness, Text: fmt.Sprintf(format, args...)})
}

// background is the context of callers that never give up.
var background = context.Background()
