package quorum

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/clock"
)

// Group is the lanes to a fixed set of nodes.
type Group[T any] struct {
	clock   clock.Clock
	timeout time.Duration
	lanes   []*lane[T]
	waiters sync.Pool // of *waiter[T]
	cancel  context.CancelFunc

	// The plain group, not one with a derived context: a lane that ends must
	// not end its siblings.
	running errgroup.Group
}

// NewGroup starts a lane for each carrier. timeout is the longest that a round
// waits for a vote, unless its Spec says otherwise. Close must be called, or the lanes'
// goroutines stay.
func NewGroup[T any](carriers []Carrier[T], clk clock.Clock, timeout time.Duration) *Group[T] {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Group[T]{clock: clk, timeout: timeout, cancel: cancel}
	for _, carrier := range carriers {
		l := newLane(carrier, clk, timeout)
		g.lanes = append(g.lanes, l)
		g.running.Go(func() error {
			l.run(ctx)
			return nil
		})
	}
	return g
}

// Start begins a round on the lanes. It never blocks on a node.
func (g *Group[T]) Start(spec Spec[T]) *Round[T] {
	r := g.Submit(spec)
	r.Listen()
	return r
}

// Submit hands a round to the lanes and calls nobody back. Who holds a lock that
// a callback takes may call it, and must call [Round.Listen] when the lock is
// released; until then the round is not decided, whatever the nodes say.
func (g *Group[T]) Submit(spec Spec[T]) *Round[T] {
	r := &Round[T]{spec: spec, group: g, deaf: true}
	if r.spec.Within == 0 {
		r.spec.Within = g.timeout
	}
	r.calls = r.few[:0]
	if len(g.lanes) > len(r.few) {
		r.calls = make([]Call[T], 0, len(g.lanes))
	}
	for i := range g.lanes {
		if spec.Nodes == nil || spec.Nodes[i] {
			r.calls = append(r.calls, Call[T]{round: r, node: i})
		} else {
			r.tally.Refused++
		}
	}
	r.tally.N = len(g.lanes)
	r.open, r.unheard = len(r.calls), len(r.calls)
	r.start = g.clock.Now()
	if spec.Decided != nil {
		r.mu.Lock() // so that the timer, should it fire at once, finds it set
		r.expiry = g.clock.AfterFunc(r.spec.Within, r.Expire)
		r.mu.Unlock()
	}
	for i := range r.calls {
		c := &r.calls[i]
		g.lanes[c.node].submit(c)
	}
	return r
}

// Unreachable says that a node cannot be reached just now: what waits for it
// fails at once with err, and so does what comes until Reachable is called or a pause
// after the batch under way is over. The pauses double from 10 ms to half a second as
// long as the node stays unreachable; a round that too few nodes answer makes them 10 ms
// again. Calls that are kept stay queued.
func (g *Group[T]) Unreachable(node int, err error) { g.lanes[node].unreachable(err) }

// hurry has every node that cannot be reached tried again soon.
func (g *Group[T]) hurry() {
	now := g.clock.Now()
	for _, l := range g.lanes {
		l.hurry(now)
	}
}

// Reachable takes Unreachable back.
func (g *Group[T]) Reachable(node int) { g.lanes[node].reachable() }

// Close refuses new calls, lets the lanes send what is queued, and returns when
// their goroutines have ended. A node that does not answer is waited for no
// longer than its carrier takes for the batch under way and one more; what is
// waiting for a connection is cancelled after grace. Calls that were not
// answered by then fail: what they asked may or may not have been done.
func (g *Group[T]) Close(grace time.Duration) {
	for _, l := range g.lanes {
		l.close()
	}
	timer := g.clock.AfterFunc(grace, g.cancel)
	_ = g.running.Wait()
	timer.Stop()
	g.cancel()
}
