package sim

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"testing/synctest"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// Stage plays a scenario tick by tick. While it stands between two ticks, virtual time stands still.
// What is seen depends only on the scenario's settings and on which actions come at which tick, not on
// how long the stage stands between them, nor on what comes later. Only one goroutine may use it.
type Stage struct {
	w      *world
	s      scenario.Scenario
	actors []*actor
	drawn  []scenario.Action // that have not happened yet
	done   []scenario.Action // in order, as far as a violation can be their effect
	judged *judge
	goods  *resource

	// These channels are made outside of the bubble: in it time stands still while a goroutine waits
	// for one of them.
	resume    chan []scenario.Action
	paused    chan struct{}
	over      chan struct{}
	sample    []metrics.Sample
	allocated uint64 // when the last collection was, or the stage was set up
}

// NewStage sets a scenario up. Its actions and Until are not used: Advance takes the actions. tell gets
// what can be seen, one line at a time; it must not call the stage.
func NewStage(s scenario.Scenario, tell func(time.Duration, scene.Line)) *Stage {
	st := &Stage{s: s, drawn: s.Drawn(), resume: make(chan []scenario.Action), paused: make(chan struct{}), over: make(chan struct{}), sample: []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}}
	st.w = newWorld(stagePlan(s))
	st.w.played, st.w.slots = true, s.Slots
	st.w.show = newShow(st.w, tell)
	st.judged = newJudge(st)
	go func() {
		defer close(st.over)
		st.w.inBubble(st.run)
	}()
	st.wait()
	metrics.Read(st.sample)
	st.allocated = st.sample[0].Value.Uint64()
	return st
}

// Advance performs the actions, and lets one tick pass. It reports whether the run goes on: it ends only
// after a panic, or after Close.
func (st *Stage) Advance(actions []scenario.Action) bool {
	select {
	case <-st.over:
		return false
	default:
	}
	st.collect()
	st.resume <- actions
	return st.wait()
}

// Close ends the run. It returns what the simulation itself did wrong, such as a goroutine that is left.
func (st *Stage) Close() error {
	close(st.resume)
	<-st.over
	var wrong []error
	for _, v := range st.w.violations {
		if v.Rule == Goroutines || v.Rule == Panics || v.Rule == Harness {
			wrong = append(wrong, errors.New(v.String()))
		}
	}
	return errors.Join(wrong...)
}

// wait returns when the stage stands. It returns false if the run is over.
func (st *Stage) wait() bool {
	select {
	case <-st.paused:
		return true
	case <-st.over:
		return false
	}
}

// garbage is how much memory is allocated between two collections. There are none while anything
// happens, as they would change what happens; see inBubble.
const garbage = 64 << 20

// collect frees memory between two ticks. It does so when the stage has allocated enough since it was set
// up, so not even the length of the query decides on it.
func (st *Stage) collect() {
	metrics.Read(st.sample)
	if now := st.sample[0].Value.Uint64(); now-st.allocated > garbage {
		runtime.GC()
		st.allocated = now
	}
}

// stagePlan returns the plan of a scenario.
func stagePlan(s scenario.Scenario) Plan {
	p := Plan{
		Config: Config{Seed: s.Seed, Nodes: s.Nodes, Clients: s.Clients}, Nodes: s.Nodes, Keys: 1,
		Fencing: s.Fencing, Fair: s.Fair, Latency: max(s.Latency, time.Microsecond),
	}
	if s.Guard {
		p.Guard = s.TTL
	}
	for range s.Clients {
		p.Clients = append(p.Clients, ClientPlan{
			Rate: 1, Drift: clock.DefaultDrift, NodeTimeout: s.Timeout, Workers: 1, TTLs: []time.Duration{s.TTL}, Careful: true,
		})
	}
	return p
}

// run is what happens in the bubble.
func (st *Stage) run() {
	w := st.w
	w.start = time.Now()
	w.show.line(st.begin())
	w.masters = inmemory.StartVirtual(tb{w}, st.s.Nodes+1)
	for i := range st.s.Nodes {
		w.observe(i)
		w.show.master(i, nil)
	}
	st.goods = newResource(w, w.masters.Master(st.s.Nodes))
	for i := range st.s.Clients {
		c := w.newClient(i)
		w.clients = append(w.clients, c)
		st.actors = append(st.actors, newActor(st, c))
		w.show.event(history.Event{Kind: history.Started, Client: i + 1})
	}
	for next := scenario.Tick; ; next += scenario.Tick {
		synctest.Wait()
		st.judged.look()
		st.paused <- struct{}{}
		actions, ok := <-st.resume
		if !ok {
			break
		}
		for len(st.drawn) > 0 && st.drawn[0].At <= w.now() {
			actions = append(slices.Clip(actions), st.drawn[0])
			st.drawn = st.drawn[1:]
		}
		for _, a := range actions {
			st.act(a)
		}
		time.Sleep(next - w.now())
		for _, a := range st.actors {
			a.renewed()
		}
	}
	st.end()
}

// end mends all faults, and closes everything.
func (st *Stage) end() {
	for i := range st.s.Nodes {
		st.act(scenario.Action{Verb: scenario.Heal, Node: i + 1})
		st.w.masters.Master(i).Resume()
	}
	for _, a := range st.actors {
		a.end()
	}
	st.goods.close()
	st.w.end = st.w.now()
	st.w.must(st.w.masters.Close())
}

func (st *Stage) begin() scene.Begin {
	s := st.s
	text := fmt.Sprintf("%d masters, %d clients, ttl %v", s.Nodes, s.Clients, s.TTL)
	return scene.Begin{
		Mode: "scenario", Nodes: s.Nodes, Clients: s.Clients, Quorum: s.Quorum(), Tick: scenario.Tick,
		TTL: s.TTL, Timeout: s.Timeout, Latency: s.Latency, Fencing: s.Fencing, Guard: st.w.plan.Guard, Fair: s.Fair, Slots: s.Slots,
		Seed: fmt.Sprint(s.Seed), Command: fmt.Sprintf("redlock-lab sim --exact --scenario '%v'", s), Text: text,
	}
}
