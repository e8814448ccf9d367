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
	tickets tickets
	foreign RecentKeys // keys that clients of other libraries were seen to use
}

// New returns a Waits without any wait.
func New(cfg Config) *Waits { return &Waits{Config: cfg} }

// Wait is the wait of all callers of one Redlock for one key.
//
// Any message or node can be lost, so no step depends on one: a wait that lasts looks at
// the nodes by itself, and the first in the queue tries when the holder's key expires. Each
// message may be sent twice. A lost message delays a waiter, and never strands it.
type Wait struct {
	waits   *Waits
	nodeKey string
	changed chan struct{} // holds one signal: Next may return something else now

	mu    sync.Mutex
	phase phase
	told  time.Time // when all nodes were told that the wait is over; zero: not yet

	ticket  int64 // of the queue entries, the same on all nodes
	lowest  int64 // the ticket before it was raised
	raises  int   // how often it was raised
	raiseIt bool  // the ticket has to be raised

	tries     int       // in vain, one after the other
	noQuorum  int       // turns in a row that found no majority in time
	notBefore time.Time // of the next try, if a majority is free
	poll      time.Time // of the next try if nobody can wake us, or of the next probe while outside
	foreign   foreign   // signs of clients that wake nobody
	look      look
	// quarantineEnds is when a node's vote counts again, which is worth a try; zero: never.
	quarantineEnds time.Time
	// undelivered is until when the operation is repeated that gives back what a try took.
	undelivered time.Time
	free        int       // nodes that were free, and whose votes count, at the last Next
	freeSince   time.Time // when that number last changed; zero once the others were asked

	nodes []node
}

// phase is what a wait may do.
type phase uint8

const (
	// queued: the wait has, or asks for, an entry in the key's queue on every node that can
	// wake it. It tries to take the key when a majority has woken it.
	queued phase = iota
	// outside: the last turn found no majority in time, so the wait has no entry and takes
	// nothing. An entry would hold up the other waiters at each of its turns: it would be woken
	// first, take the key where it can, and give it back in vain. The wait asks the nodes from
	// time to time, and queues again, with a new ticket, once a majority has answered.
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
	w.foreign.seen = ws.foreign.seen(nodeKey, now)
	return w
}

// takeTicket starts with a new ticket. The caller holds mu, or is the only one that has w.
func (w *Wait) takeTicket(now time.Time) {
	w.ticket = w.waits.tickets.next(now)
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

// BeginOutside has a new wait begin outside of the queue, as the first attempt, before it had
// a turn, found no majority.
func (w *Wait) BeginOutside(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.tries = outside, 1
	w.poll = now.Add(w.waits.backoff(1))
}

// Tried reports a try in vain. held reports that enough nodes answered, and refused: other
// clients have the key, or parts of it. Otherwise no majority answered in time. prompted is
// Step.Prompted of the try. The next try without a wake-up is no sooner than after warmUp, the
// time that new subscriptions need.
func (w *Wait) Tried(now time.Time, held, prompted bool, warmUp time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	pause := w.waits.backoff(w.tries)
	if !held {
		w.stepOut(now, pause)
		return
	}
	w.noQuorum = 0
	w.notBefore = time.Time{}
	if w.tries > 2 { // other clients are quicker; but never as fast as nodes answer
		w.notBefore = now.Add(min(pause, firstPause))
	}
	if prompted { // another client was quicker; it may be one that does not wake us
		w.look.pause, w.look.at = firstLook, now.Add(firstLook)
	}
	w.poll = now.Add(max(pause, warmUp))
}

// stepOut makes the wait stay outside of the queue until a majority answers, after a turn that
// found none in time. The first such turn may be an accident. After each further one in a row
// the wait stays out for twice as long, as its turns hold up the others for about a NodeTimeout
// each. The operation that gave the try back has also removed the queue entries. The caller
// holds mu.
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
	w.tries++
	w.poll = now.Add(w.waits.backoff(w.tries))
	if !majority {
		return
	}
	w.phase = queued
	w.takeTicket(now)
	w.free, w.freeSince, w.notBefore = 0, time.Time{}, time.Time{}
	w.look.pause, w.look.at = firstLook, now.Add(firstLook)
	for i, n := range w.nodes {
		w.nodes[i] = node{silent: n.silent, noQueue: n.noQueue}
	}
}

// GivesBack reports an operation that gives back what a try took. The operation is repeated
// until the given time, and asks the nodes of each list for a queue entry.
func (w *Wait) GivesBack(until time.Time, entries ...[]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, nodes := range entries {
		w.request(nodes)
	}
	w.undelivered = until
}

// LeaveUntil returns the time until which the end of the wait is repeated to a node that does
// not answer. A node that is not reached removes the entry when its turn comes.
func (w *Wait) LeaveUntil(now time.Time) time.Time {
	until := now.Add(max(w.waits.NodeTimeout, LeaveFor))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.undelivered.After(until) {
		return w.undelivered // behind an operation that may make an entry
	}
	return until
}

// LeaveFor is how long the removal of a queue entry is repeated to a node that does not answer.
const LeaveFor = 10 * time.Second

// Won ends the wait, as the caller has the lock. It returns the nodes whose wake-up was not
// used: they refused the lock, since the release that woke us is still on its way there. Their
// queue entries remain until the lock grows to these nodes, or is released. The nodes that
// granted the lock have removed the entry. The result is nil if there are no such nodes.
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

// End records that all nodes are being told that the wait is over.
func (w *Wait) End(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.told = over, now
}

// crossing is how long after the end of a wait a message may arrive that its node sent before
// the node knew. A later message shows that the node does not know.
const crossing = time.Second

// Over reports that no message for the wait can arrive any more.
func (w *Wait) Over(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended(now)
}

// ended is Over; the caller holds mu.
func (w *Wait) ended(now time.Time) bool { return !w.told.IsZero() && now.Sub(w.told) >= crossing }

// Left reports that the nodes have been, or are being, told that the entry with this ticket is
// given up.
func (w *Wait) Left(ticket int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.told.IsZero() || w.gaveUp(ticket)
}

// gaveUp reports that the wait has given up its entry with this ticket, or will not have one.
// The caller holds mu.
func (w *Wait) gaveUp(ticket int64) bool { return w.phase == outside || ticket < w.lowest }

// majority returns how many nodes form a majority.
func (w *Wait) majority() int { return quorum.Size(len(w.nodes)) }

const (
	firstPause = 5 * time.Millisecond // a few round trips in a data centre
	lastPause  = 100 * time.Millisecond
)

// backoff returns the pause after so many tries, before the next one without a wake-up. It is
// random up to a bound that doubles, so that contenders that split the nodes between them do
// not meet again.
func (ws *Waits) backoff(tries int) time.Duration {
	return time.Millisecond + ws.Random(min(firstPause<<min(tries-1, 10), lastPause)-time.Millisecond)
}
