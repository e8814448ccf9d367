package quorum

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
)

const (
	// maxBatch bounds the calls in one round trip, so that the first call of a burst need not
	// wait for the thousandth.
	maxBatch = 1024
	// maxBacklog bounds the memory that an unresponsive node can pin: beyond it, operations
	// for that node fail at once. It is large enough to release 100,000 locks in one go.
	maxBacklog = 1 << 17
	// idleRest is how long a lane without work keeps its connection.
	idleRest = time.Second
	// Pending deliveries are repeated after firstRetry, then ever more rarely up to lastRetry,
	// and with any other traffic of their lane. While the node does not answer, at most
	// fewPending go at a time, so that the batch that finds out whether it is back is short.
	fewPending = 64
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Second
	// A node that refuses connections is dialled fewDials times in a row, then after pauses
	// that double from redial to lastRedial. A majority does without it meanwhile. When too
	// few nodes answer a round, its vote may decide, and the pause is redial again.
	//
	// Without pauses, a lane dials as fast as its callers ask; with one of five masters down
	// that took half of their throughput. With two of five masters dialled at every redial,
	// each dial with its DNS queries, the p50 of eight processes grew from 0.5 to 1.4 ms.
	fewDials   = 10
	redial     = 10 * time.Millisecond
	lastRedial = 500 * time.Millisecond
)

// A Transport takes batches of calls to one node. One goroutine at a time calls its methods.
type Transport[T any] interface {
	// Carry performs the batch on the node, in order, and answers each call. It may take as
	// long as the node's connection allows: rounds do not wait for it. ctx ends when the group
	// is closed and cannot wait longer.
	Carry(ctx context.Context, batch []*Call[T])
	// Rest is called after a while without work, to give connections back.
	Rest()
}

// lane is the ordered stream of operations to one node: first come, first served, one batch
// under way. Calls that arrive meanwhile share the next batch. Since there is one stream, a
// release can never overtake its own acquisition.
type lane[T any] struct {
	group     *Group[T]
	transport Transport[T]
	wake      chan struct{} // holds one wake-up

	// The timers wake the lane like a call, so that it sleeps on one channel.
	rest, repeat, pause clock.Timer

	// began is how long after the group was made the batch under way began, plus 1 ns; 0 if none is
	// under way.
	began atomic.Int64

	mu      sync.Mutex
	rested  bool // rest has fired
	due     bool // repeat has fired: send the pending deliveries even without other traffic
	resumes bool // pause has fired, or was cut short
	pausing bool // nothing is sent until resumes is set, and down stays set
	queue   []*Call[T]
	batch   []*Call[T]    // picked from the queue, until they are settled
	sweep   int           // submissions until room looks for dropped calls
	down    error         // why the node cannot be reached; nil if it can, or nothing is known
	dials   int           // batches in a row that could not connect
	paused  time.Time     // when the pause began
	length  time.Duration // how long the pause is
	waiting bool          // the lane's goroutine sleeps on wake
	closing bool

	// The fields below are used by the lane's goroutine alone.
	live        []*Call[T] // calls of batch that are still wanted
	undelivered []*Call[T] // pending deliveries: kept calls whose result is indeterminate
	votes       []Voted[T] // of the batch, for OnVotes
	retry       time.Duration
	last        bool // batch was picked while the lane was closing
}

func newLane[T any](g *Group[T], transport Transport[T]) *lane[T] {
	return &lane[T]{group: g, transport: transport, wake: make(chan struct{}, 1)}
}

// submit queues the call, or finishes it at once if the lane cannot take it.
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
		l.mu.Unlock() // it is sent with the others after the pause
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

// room reports whether one more call may queue. Now and then it removes dropped calls from a
// long queue: once in as many submissions as it had calls left, a constant cost for each.
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

// unreachable fails the calls that wait for the node, and later calls while err stands.
// Without a batch under way nothing would ever clear err, so it is ignored.
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

// reachable undoes unreachable, and ends the pause that may have followed.
func (l *lane[T]) reachable() {
	l.mu.Lock()
	l.down = nil
	l.dials = 0
	l.resumes = l.pausing
	l.signal()
}

// hurry shortens a pause to redial, counted from its beginning, because too few nodes answered
// a round.
func (l *lane[T]) hurry(now time.Time) {
	l.mu.Lock()
	l.dials = min(l.dials, fewDials-1)
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
	l.resumes = true
	l.signal()
}

// hangs reports whether the node has left a batch unanswered for so long that it hangs.
func (l *lane[T]) hangs(now time.Time) bool {
	began := time.Duration(l.began.Load())
	return began != 0 && now.Sub(l.group.made)-(began-1) >= l.group.timeout
}

// close makes run return when all queued calls have been sent, or after the first batch that
// its node leaves unanswered.
func (l *lane[T]) close() {
	l.mu.Lock()
	l.closing = true
	l.signal()
}
