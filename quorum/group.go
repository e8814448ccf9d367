package quorum

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/clock"
)

// Group holds the lanes to a fixed set of nodes.
type Group[T any] struct {
	clock   clock.Clock
	timeout time.Duration // a node that leaves a batch unanswered for that long hangs
	made    time.Time
	lanes   []*lane[T]
	waiters sync.Pool // of *waiter[T]
	counts  []counts
	onVotes func([]Voted[T]) // nil: nobody listens
	cancel  context.CancelFunc

	// running has no derived context, because a lane that ends must not end the others.
	running errgroup.Group
}

// NewGroup starts a lane for each [Transport]. timeout is the longest that a round waits for a
// vote, unless its Spec says otherwise. The lanes run until Close.
func NewGroup[T any](transports []Transport[T], clk clock.Clock, timeout time.Duration) *Group[T] {
	ctx, cancel := context.WithCancel(context.Background())
	g := &Group[T]{clock: clk, timeout: timeout, made: clk.Now(), cancel: cancel, counts: make([]counts, len(transports))}
	for _, transport := range transports {
		l := newLane(g, transport)
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
	r.Arm()
	return r
}

// Submit hands a round to the lanes without calling a callback, so its caller may hold a lock
// that callbacks take. After releasing that lock the caller must call [Round.Arm]. The
// round is not decided before that.
func (g *Group[T]) Submit(spec Spec[T]) *Round[T] {
	r := &Round[T]{spec: spec, group: g, held: true}
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
		r.mu.Lock() // so that a timer that fires at once finds expiry set
		r.expiry = g.clock.AfterFunc(r.spec.Within, r.Expire)
		r.mu.Unlock()
	}
	for i := range r.calls {
		c := &r.calls[i]
		g.lanes[c.node].submit(c)
	}
	return r
}

// Unreachable reports that a node cannot be reached now. Waiting calls fail at once with err.
// So do later ones, until Reachable is called or the batch under way is over. If ten batches in a
// row could not connect, later calls fail until a pause after the batch is over, too. The pauses
// double from 10 ms to half a second while the node stays unreachable, and are 10 ms again after
// a round that too few nodes answer. Kept calls stay queued.
func (g *Group[T]) Unreachable(node int, err error) { g.lanes[node].unreachable(err) }

// hurry makes the lanes retry all unreachable nodes soon.
func (g *Group[T]) hurry() {
	now := g.clock.Now()
	for _, l := range g.lanes {
		l.hurry(now)
	}
}

// Reachable undoes Unreachable.
func (g *Group[T]) Reachable(node int) { g.lanes[node].reachable() }

// Close refuses new calls, lets the lanes send what is queued, and returns when their
// goroutines have ended. For a node that does not answer, it waits at most for the batch under
// way and one more. It cancels connection attempts after grace. Calls still unanswered fail,
// and their results are indeterminate.
func (g *Group[T]) Close(grace time.Duration) {
	for _, l := range g.lanes {
		l.close()
	}
	timer := g.clock.AfterFunc(grace, g.cancel)
	_ = g.running.Wait()
	timer.Stop()
	g.cancel()
}
