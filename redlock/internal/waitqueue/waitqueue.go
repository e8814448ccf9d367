// Package waitqueue decides what a wait for a key does next.
//
// A [Wait] has an entry in the key's queue on each node. Its methods take the nodes' replies and
// messages, and the time; [Wait.Next] returns the next step. The package sends nothing, starts no
// goroutine and reads no clock.
//
// [Local] orders the callers of one Redlock that want the same key, so that only the first of
// them waits on the nodes.
package waitqueue

import (
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// Config is what all waits of a Redlock share.
type Config struct {
	Nodes       int           // how many there are
	NodeTimeout time.Duration // how long a node has to answer
	Random      func(below time.Duration) time.Duration
}

// Waits makes the waits of a Redlock.
type Waits struct {
	Config
	tickets     tickets
	foreignKeys RecentKeys // keys that clients of other libraries were seen to use
}

// New returns a Waits without any wait.
func New(cfg Config) *Waits { return &Waits{Config: cfg} }

// Wait is the wait of all callers of one Redlock for one key.
//
// Any message or node can be lost, so no step depends on one: a wait that lasts looks at the
// nodes without a message, and the first waiter tries when the holder's key expires. A message
// may also come twice. A lost message delays a waiter, and never strands it.
type Wait struct {
	waits   *Waits
	nodeKey string
	changed chan struct{} // holds one signal: Next may return something else now

	mu      sync.Mutex
	phase   phase
	endedAt time.Time // when the nodes began to be told that the wait is over; zero: not yet

	ticket  int64 // of the queue entries, the same on all nodes
	lowest  int64 // the ticket before it was raised; messages for it still concern the wait
	raises  int   // how often the ticket was raised
	raiseIt bool  // the ticket has to be raised

	attempts  int       // tries and probes so far: the pauses grow with it
	noQuorum  int       // tries in a row that found no majority in time
	notBefore time.Time // earliest time of the next try, even if a majority has woken the wait
	poll      time.Time // of the next try or probe that needs no wake-up
	foreign   foreign   // signs of clients that wake nobody
	look      look
	// quarantineEnds is when a node's vote counts again; zero: unknown. It stays in the past until
	// a try or a probe was made after it.
	quarantineEnds time.Time
	// givesBackUntil is how long the operation that gives back what a try took is repeated.
	givesBackUntil time.Time
	wokenBy        int       // at the last Next: nodes that had woken us, and whose votes counted
	wokenSince     time.Time // when that number last changed; zero once the others were asked

	nodes []node
}

// phase is what a wait may do.
type phase uint8

const (
	// queued: the wait has, or asks for, an entry in the key's queue on every node that can
	// wake it. It tries to take the key when a majority has woken it.
	queued phase = iota
	// outside: the last try, or the first attempt, found no majority in time. So the wait has no
	// entry and takes nothing. With an entry it would hold up the other waiters at each of its
	// turns: it would be woken first, take the key where it can, and give it back in vain. The
	// wait probes the nodes from time to time, and queues again, with a new ticket, once a
	// majority has answered.
	outside
	// won: the caller has the lock. Entries may remain on nodes that the lock can grow to.
	won
	// over: the wait was given up, or its lock is released or lost.
	over
)

// look is a question to one node that no message has prompted.
type look struct {
	node    int       // asked last
	pending bool      // it has not answered yet
	at      time.Time // when the next node is asked
	pause   time.Duration
}

// Begin returns a new wait for a key.
func (ws *Waits) Begin(nodeKey string, now time.Time) *Wait {
	w := &Wait{
		waits: ws, nodeKey: nodeKey, changed: make(chan struct{}, 1),
		nodes: make([]node, ws.Nodes),
		look:  look{node: int(ws.Random(time.Duration(ws.Nodes))), pause: firstLook, at: now.Add(firstLook)},
	}
	w.takeTicket(now)
	w.foreign.seen = ws.foreignKeys.seen(nodeKey, now)
	return w
}

// takeTicket starts with a new ticket. The caller holds mu, or is the only one that has w.
func (w *Wait) takeTicket(now time.Time) {
	w.ticket = w.waits.tickets.draw(now)
	w.lowest, w.raises, w.raiseIt = w.ticket, 0, false
}

// Changed returns a channel that holds a signal when Next may return something else than before.
func (w *Wait) Changed() <-chan struct{} { return w.changed }

// signal makes the caller of Next call it again. The caller holds mu.
func (w *Wait) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // an unread signal serves as well
	}
}

// Ticket returns the ticket of the wait's queue entries.
func (w *Wait) Ticket() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ticket
}

// BeginOutside makes a new wait begin outside of the queue, as the first attempt found no majority
// in time.
func (w *Wait) BeginOutside(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.attempts = outside, 1
	w.poll = now.Add(w.waits.backoff(1))
}

// Tried reports a try in vain. held reports that enough nodes answered, and refused: other
// clients have the key, or parts of it. Otherwise no majority answered in time. prompted is
// Step.Prompted of the try. The next try without a wake-up is no sooner than after warmUp, the
// time that new subscriptions need.
func (w *Wait) Tried(now time.Time, held, prompted bool, warmUp time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	pause := w.waits.backoff(w.attempts)
	if !held {
		w.stepOut(now, pause)
		return
	}
	w.noQuorum = 0
	w.notBefore = time.Time{}
	if w.attempts > 2 { // other clients are quicker; but never as fast as nodes answer
		w.notBefore = now.Add(min(pause, firstPause))
	}
	if prompted { // another client was quicker; it may be a foreign one, which wakes nobody
		w.look.pause, w.look.at = firstLook, now.Add(firstLook)
	}
	w.poll = now.Add(max(pause, warmUp))
}

// stepOut makes the wait stay outside of the queue until a majority answers, after a try that
// found none in time. The first such try may be an accident. After each further one in a row the
// wait stays outside for twice as long, as each such turn holds up the other waiters for about a
// NodeTimeout. The operation that gives back what the try took also removes the queue entries.
// The caller holds mu.
func (w *Wait) stepOut(now time.Time, pause time.Duration) {
	w.phase = outside
	w.poll = now.Add(pause)
	if w.noQuorum++; w.noQuorum > 1 {
		w.poll = now.Add(max(pause, min(w.waits.NodeTimeout<<min(w.noQuorum-1, 16), lastLook)))
	}
	w.foreign.forget()
}

// Probed reports whether a majority has answered a probe. If so the wait queues again as a
// newcomer does: waiters that came meanwhile are ahead.
func (w *Wait) Probed(now time.Time, majority bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	w.poll = now.Add(w.waits.backoff(w.attempts))
	if !majority {
		return
	}
	w.phase = queued
	w.takeTicket(now)
	w.wokenBy, w.wokenSince, w.notBefore = 0, time.Time{}, time.Time{}
	w.look.pause, w.look.at = firstLook, now.Add(firstLook)
	for i, n := range w.nodes {
		w.nodes[i] = node{silent: n.silent, noQueue: n.noQueue}
	}
}

// GivesBack reports an operation that gives back what a try took. The operation is repeated
// until the given time, and asks the nodes of each list for a queue entry.
func (w *Wait) GivesBack(until time.Time, asked ...[]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, nodes := range asked {
		w.request(nodes)
	}
	w.givesBackUntil = until
}

// LeaveUntil returns the time until which the removal of the queue entries is repeated to a node
// that does not answer. A node that is not reached by then wakes the entry in its order, and
// removes it as nobody comes.
func (w *Wait) LeaveUntil(now time.Time) time.Time {
	until := now.Add(max(w.waits.NodeTimeout, LeaveFor))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.givesBackUntil.After(until) {
		return w.givesBackUntil // that operation may make an entry, and the removal must follow it
	}
	return until
}

// LeaveFor is how long the removal of a queue entry is repeated to a node that does not answer.
const LeaveFor = 10 * time.Second

// Won records that the caller has the lock. It returns the nodes that have the wait's entry and
// have woken it, but whose wake-up came too late for the try that won. Their queue entries
// remain until the lock grows to these nodes, or is released. The nodes that granted the lock
// have removed the entry. The result is nil if there are no late nodes.
func (w *Wait) Won() (late []bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase = won
	for i, n := range w.nodes {
		if n.entry.present() && n.woken {
			if late == nil {
				late = make([]bool, len(w.nodes))
			}
			late[i] = true
		}
	}
	return late
}

// End records that the wait is over, and that the nodes are being told so.
func (w *Wait) End(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.endedAt = over, now
}

// crossing is how long after End a message for the wait may arrive from a node that had not yet
// been told of the end when it sent the message. A later one shows that the node was not told.
const crossing = time.Second

// Forgettable reports that the wait is over for so long that it need not recognise messages any
// more.
func (w *Wait) Forgettable(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forgettable(now)
}

// forgettable is Forgettable; the caller holds mu.
func (w *Wait) forgettable(now time.Time) bool {
	return !w.endedAt.IsZero() && now.Sub(w.endedAt) >= crossing
}

// Left reports that the wait has given up its entry with this ticket: the nodes have been, or are
// being, told so.
func (w *Wait) Left(ticket int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.endedAt.IsZero() || w.outdated(ticket)
}

// outdated reports that the wait stepped out of the queue since it had this ticket. The caller
// holds mu.
func (w *Wait) outdated(ticket int64) bool { return w.phase == outside || ticket < w.lowest }

// majority returns how many nodes form a majority.
func (w *Wait) majority() int { return quorum.Size(len(w.nodes)) }

const (
	firstPause = 5 * time.Millisecond // a few round trips in a data centre
	lastPause  = 100 * time.Millisecond
)

// backoff returns the pause after so many tries and probes, before the next one without a wake-up.
// It is random up to a bound that doubles, so that clients that split the nodes between them do
// not meet again.
func (ws *Waits) backoff(attempts int) time.Duration {
	return time.Millisecond + ws.Random(min(firstPause<<min(attempts-1, 10), lastPause)-time.Millisecond)
}
