package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

const (
	// maxBatch bounds what one round trip carries, so that the first call of
	// a burst is not answered only when the thousandth is.
	maxBatch = 1024
	// maxBacklog bounds the memory that an unresponsive node can pin: beyond
	// it, operations for that node fail at once. It leaves room for releasing
	// 100,000 locks in one go.
	maxBacklog = 1 << 17
	// idleRest is how long a lane without work keeps its connection.
	idleRest = time.Second
	// Owed calls are repeated on their own after firstRetry, then ever more
	// rarely up to lastRetry, and with any other traffic of their lane.
	// While the node does not answer, no more than fewOwed go at a time, so
	// that those who want to know whether it is back do not drag all of them.
	fewOwed    = 64
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// A node that refuses connections is dialled fewDials times in a row, and from
	// then on after pauses that double from redial to lastRedial. Without pauses a
	// lane dials as fast as its callers ask, which took half of their throughput with
	// one of five masters down. With two of five dialled at every redial, each dial
	// with its questions to the DNS, the p50 of eight processes grew from 0.5 to 1.4
	// ms. A majority does without the node meanwhile. When too few nodes answer a
	// round, its vote may decide, and the pause is redial again.
	fewDials   = 10
	redial     = 10 * time.Millisecond
	lastRedial = 500 * time.Millisecond
)

// Carrier takes operations to one node. Its methods are called by one goroutine
// at a time.
type Carrier[T any] interface {
	// Carry performs the batch on the node, in its order, and answers each
	// call. It may take as long as the node's connection allows: rounds do not
	// wait for it. ctx ends when the group is closed and cannot wait longer.
	Carry(ctx context.Context, batch []*Call[T])
	// Rest says that there has been nothing to do for a while: time to give
	// connections back.
	Rest()
}

// lane is the ordered stream of operations to one node: first come first
// served, one batch under way. What arrives meanwhile shares the next batch. As
// there is only one stream, a release can never overtake its own acquisition.
type lane[T any] struct {
	carrier Carrier[T]
	clock   clock.Clock
	timeout time.Duration // a node that leaves a batch unanswered for that long hangs
	wake    chan struct{} // holds one wake-up

	// The timers wake the lane as a call does, so that it sleeps on one channel.
	rest, repeat, pause clock.Timer

	mu      sync.Mutex
	rested  bool // rest has fired
	due     bool // repeat has: the owed calls shall go even without other traffic
	over    bool // pause has
	pausing bool // until pause fires nothing is sent, and down stands
	queue   []*Call[T]
	batch   []*Call[T]    // picked from the queue, until they are settled
	sweep   int           // submissions until room looks for dropped calls
	down    error         // why the node cannot be reached, while that is known
	refused int           // dials that were refused one after the other
	paused  time.Time     // when the pause began
	length  time.Duration // of the pause
	waiting bool          // the lane's goroutine sleeps on wake
	closing bool

	// Used by the lane's goroutine alone.
	live  []*Call[T] // those of batch that are still wanted
	owed  []*Call[T] // kept calls whose fate is unknown
	retry time.Duration
	final bool // batch was picked when the lane was closing
}

func newLane[T any](carrier Carrier[T], clk clock.Clock, timeout time.Duration) *lane[T] {
	return &lane[T]{carrier: carrier, clock: clk, timeout: timeout, wake: make(chan struct{}, 1)}
}

// submit queues the call, or ends it at once when the lane cannot take it.
func (l *lane[T]) submit(c *Call[T]) {
	l.mu.Lock()
	if err := l.down; err != nil && !l.closing {
		l.mu.Unlock()
		if c.unreachable(err) {
			return
		}
		l.mu.Lock()
	}
	if l.closing {
		l.mu.Unlock()
		c.Fail(ErrClosed)
		return
	}
	if len(l.queue) >= maxBatch && !l.room() {
		l.mu.Unlock()
		c.Fail(ErrBacklog)
		return
	}
	l.queue = append(l.queue, c)
	if l.pausing {
		l.mu.Unlock() // it goes with the others when the pause is over
		return
	}
	l.signal()
}

// signal wakes the lane if it sleeps, and unlocks mu.
func (l *lane[T]) signal() {
	wake := l.waiting
	l.waiting = false
	l.mu.Unlock()
	if wake {
		select {
		case l.wake <- struct{}{}:
		default: // an unread wake-up serves as well
		}
	}
}

// room forgets, now and then, the calls of a long queue that were dropped while
// they queued, and reports whether one more may queue. It looks at the queue
// once in as many submissions as it had calls left: a constant for each.
func (l *lane[T]) room() bool {
	if l.sweep--; l.sweep > 0 {
		return len(l.queue) < maxBacklog
	}
	kept := l.queue[:0]
	for _, c := range l.queue {
		if !c.over() {
			kept = append(kept, c)
		}
	}
	clear(l.queue[len(kept):])
	l.queue = kept
	l.sweep = max(len(kept), maxBatch)
	return len(kept) < maxBacklog
}

// unreachable fails what waits for the node, before its carrier gives up. What
// comes while err stands fails at once too. Without a batch under way there is
// nothing that would ever take err back, and it is ignored.
func (l *lane[T]) unreachable(err error) {
	l.mu.Lock()
	if len(l.batch) == 0 {
		l.mu.Unlock()
		return
	}
	l.down = err
	calls := append(append([]*Call[T](nil), l.batch...), l.queue...)
	l.mu.Unlock()
	for _, c := range calls {
		c.unreachable(err)
	}
}

// reachable takes unreachable back, and ends the pause that may have followed.
func (l *lane[T]) reachable() {
	l.mu.Lock()
	l.down = nil
	l.refused = 0
	l.over = l.pausing
	l.signal()
}

// hurry shortens the pause to redial, counted from its beginning, as too few nodes
// answered a round.
func (l *lane[T]) hurry(now time.Time) {
	l.mu.Lock()
	l.refused = min(l.refused, fewDials-1)
	if !l.pausing || l.length <= redial {
		l.mu.Unlock()
		return
	}
	l.length = redial
	if left := redial - now.Sub(l.paused); left > 0 {
		l.pause.Reset(left)
		l.mu.Unlock()
		return
	}
	l.over = true
	l.signal()
}

// close makes run return as soon as what is queued has been sent, or at the
// first batch that its node leaves unanswered.
func (l *lane[T]) close() {
	l.mu.Lock()
	l.closing = true
	l.signal()
}
