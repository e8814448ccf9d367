package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// The rules of this package, in addition to those of package history and to Progress.
const (
	Coverage   = "coverage"   // a majority of nodes keeps the key until the lock's Until
	Liveness   = "liveness"   // without faults every client gets the lock in time
	Leftover   = "leftover"   // no key is left when all ttls are over
	Valid      = "valid"      // a lock is valid when it is handed out
	Fence      = "fence"      // a node's fence does not go down, and lets no lower token pass
	Owner      = "owner"      // no command touches another owner's key; an extension creates no key and shortens none
	Loss       = "loss"       // Do does not return nil after a loss
	Told       = "told"       // the result of an operation fits the nodes' answers
	Prompt     = "prompt"     // an operation returns in time
	Calm       = "calm"       // without faults, each operation does what its documentation says
	Starvation = "starvation" // with Fair, a client that comes later does not overtake a waiter in the queue
	Stuck      = "hang"       // if clients wait for a free key, one of them gets it in time
	Flag       = "flag"       // a node has a queue's flag exactly while it has the queue
	Quiet      = "quiet"      // a client that has released everything neither acquires nor extends
	Goroutines = "goroutines" // no goroutine is left at the end of the run
	Panics     = "panic"
	Harness    = "harness" // the simulation itself did not work
)

// cover checks, directly in the servers, that a majority of nodes keeps the lock's key
// until its Until if nobody touches it.
func (w *world) cover(c *client, op int, l *redlock.Lock) {
	if w.played || c.gone() {
		return
	}
	until := c.until(l)
	now := w.now()
	var ends []time.Duration
	for _, m := range w.servers() {
		end := time.Duration(0)
		if value, err := m.Miniredis().Get(l.Key()); err == nil && value == l.Value() {
			end = now + m.Miniredis().TTL(l.Key())
		}
		ends = append(ends, end)
	}
	slices.Sort(ends)
	slices.Reverse(ends)
	// The clocks' arithmetic in floating point is exact to some nanoseconds.
	if last := ends[quorum.Size(len(ends))-1]; last+time.Microsecond < until && w.first(c, op) {
		w.report(history.Violation{
			At: now, Rule: Coverage, Key: l.Key(),
			Locks: []history.Lock{{Client: c.index + 1, Op: op, Key: l.Key(), Granted: now, Until: until, Releasing: history.Never, Ended: history.Never}},
			Text:  fmt.Sprintf("client %d's lock #%d is valid until %v, but only until %v does a majority of nodes have its key", c.index+1, op, until, last),
		})
	}
}

// first reports whether the lock is found uncovered for the first time.
func (w *world) first(c *client, op int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.uncovered[holder{c.index, op}]
	w.uncovered[holder{c.index, op}] = true
	return !known
}

// checkValid finds locks that were handed out when their validity was over. It excuses a
// client that stands still at that time.
func checkValid(events []history.Event) (found []history.Violation) {
	paused := map[int]bool{}
	for _, e := range events {
		switch e.Kind {
		case history.Paused:
			paused[e.Client] = true
		case history.Resumed:
			paused[e.Client] = false
		case history.Granted:
			if e.Until <= e.At && !paused[e.Client] {
				found = append(found, history.Violation{
					At: e.At, Rule: Valid, Key: e.Key,
					Text: fmt.Sprintf("client %d's lock #%d was handed out %v after its validity was over", e.Client, e.Op, e.At-e.Until),
				})
			}
		}
	}
	return found
}

// lookEvery is how often look checks that held locks are covered.
const lookEvery = 17*time.Millisecond + 17

// look checks all held locks every now and then, until stop is called.
func (w *world) look() (stop func()) {
	ctx, cancel := context.WithCancel(background)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			for _, c := range w.clients {
				c.mu.Lock()
				held := make(map[int]*redlock.Lock, len(c.held))
				for op, l := range c.held {
					held[op] = l
				}
				c.mu.Unlock()
				for op, l := range held {
					if c.until(l) > w.now() && l.Context().Err() == nil {
						w.cover(c, op, l)
					}
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// patience is how long a client may have to wait for a lock when nothing fails any more. It
// waits for keys of dead clients to expire, for connections to be given up, which takes a
// default client of go-redis 5 s, and for the turns of others.
const patience = 30 * time.Second

// finish takes every lock once more, without faults. All goroutines of a client do so, to
// show that a local queue in which a waiter once gave up still moves.
func (w *world) finish(c *client, worker int) {
	r := stream(w.plan.Config.Seed, "finish", c.index, worker)
	for k := range w.plan.Keys {
		c.sleep(background, exp(r, 5*time.Millisecond))
		if !w.takeOnce(c, r, keyName(k)) {
			return
		}
	}
	if w.plan.Clients[c.index].Bursts && worker == 0 {
		w.finishBurst(c, r)
	}
}

// patience returns the constant plus the time by which servers' clocks were set back, and
// the quarantine of a node that may have forgotten.
func (w *world) patience() time.Duration {
	d := patience
	for _, f := range w.plan.Faults {
		if f.Kind == JumpBack {
			d += f.For
		}
	}
	return d + w.quarantine()
}

// quarantine returns the longest time for which the restart guard keeps a node out, by any
// clock.
func (w *world) quarantine() time.Duration {
	if w.plan.Guard == 0 {
		return 0
	}
	return 2 * (w.plan.Guard + 2*time.Second)
}

// settled is how long clean-ups may take when nothing fails any more: a default client of
// go-redis gives a connection up after 5 s, and dials for as long.
const settled = 15 * time.Second

// prompt checks that an operation took no longer than some of the client's NodeTimeouts and
// its caller's patience. Computing takes no virtual time, so only a client that stood still
// may take longer.
func (w *world) prompt(c *client, what string, op int, key string, began time.Duration, rounds int, patience time.Duration) {
	limit := time.Duration(float64(time.Duration(rounds)*w.plan.Clients[c.index].NodeTimeout+patience) / c.clock.rate)
	c.mu.Lock()
	stood := c.woke > began
	c.mu.Unlock()
	if took := w.now() - began; !stood && !c.gone() && took > limit+time.Millisecond {
		w.report(history.Violation{
			At: w.now(), Rule: Prompt, Key: key,
			Text: fmt.Sprintf("client %d's %s #%d took %v, longer than %v", c.index+1, what, op, took, limit),
		})
	}
}
