package waitqueue

import (
	"errors"
	"math"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Replied takes a node's reply to a try, or to a request for an entry, that had this ticket.
func (w *Wait) Replied(now time.Time, node int, ticket int64, q protocol.QueueReply) {
	clockBehind := q.Tail > 0 && w.waits.tickets.follow(q.Tail, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.nodes[node]
	n.silent = false
	if node == w.look.node {
		w.look.pending = false
	}
	if w.outdated(ticket) {
		return
	}
	wasQueued := w.queuedOnMajority()
	w.foreign.replied(q, now)
	n.noQueue = false
	n.entry = n.entry.answered(q.State == protocol.StateGranted)
	n.freeAt = time.Time{}
	switch {
	case q.State == protocol.StateFree || q.State == protocol.StateFenced:
		n.woken = true
	case q.Changes >= 0 && q.Changes < protocol.Millis(math.MaxInt64):
		n.freeAt = now.Add(clock.Sum(protocol.Duration(q.Changes+1), patience(q)))
	}
	switch {
	case q.Changes == protocol.Missed && q.State != protocol.StateHeld:
		// This node has removed waiters that are probably dead. The other nodes have not been
		// asked yet, and still wait for them. A try at once makes all nodes go on together.
		// Otherwise each dead waiter costs a second on this node, and then another second on
		// the others.
		w.tryBy(now)
	case q.State == protocol.StateAhead && !n.freeAt.IsZero():
		w.tryBy(n.freeAt)
	}
	// A waiter whose ticket is above our clock would, by our clock, have come after us. A wait
	// that is already queued does not step behind a waiter whose clock is ahead.
	if clockBehind && !wasQueued && q.Tail > w.ticket && w.raises < maxRaises {
		w.raiseIt = true
	}
	w.signal()
}

// patience returns how much longer than QueueReply.Changes a waiter that is not first waits before
// it tries. Each waiter ahead adds a little, so that they try in the order of the queue. If the
// reply is about the holder's key, the first waiter also gets as long as a node waits for a
// waiter that it has woken. If it is about a woken waiter, that time is in Changes already.
func patience(q protocol.QueueReply) time.Duration {
	extra := time.Duration(min(q.Ahead, 100)) * inOrder
	if q.State == protocol.StateHeld && q.Ahead > 0 {
		extra += wakeGrace
	}
	return extra
}

// tryBy makes the wait try at t at the latest, when a woken waiter that is ahead on one node has
// missed its deadline there: it may be dead, and then it is dead on all nodes. The caller holds
// mu.
func (w *Wait) tryBy(t time.Time) {
	for i := range w.nodes {
		if n := &w.nodes[i]; !n.woken && (n.freeAt.IsZero() || n.freeAt.After(t)) {
			n.freeAt = t
		}
	}
}

// Woken takes a node's message that the key is free for the wait. known is false if the node ought
// to be told that the entry was given up. late reports that the caller has won the lock with
// other nodes, and the lock can grow to this one.
func (w *Wait) Woken(now time.Time, node int, ticket int64) (known, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outdated(ticket) || w.forgettable(now) {
		return false, false
	}
	w.foreign.forget() // a client of this library has released the key
	w.nodes[node].woken, w.nodes[node].freeAt = true, time.Time{}
	w.signal()
	return true, w.phase == won
}

// Second takes a node's message that it has woken the first waiter, and that this one is second.
// The wait looks after the first one's deadline: it may be dead, and no message would say so.
func (w *Wait) Second(now time.Time, ticket int64) {
	at := now.Add(wakeGrace + inOrder)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ticket >= w.lowest && at.Before(w.look.at) {
		w.look.at = at
		w.signal()
	}
}

// Expires takes a node's message that the holder has given the key up, and that the key expires
// after d. It replaces what the node has said of the time before.
func (w *Wait) Expires(now time.Time, node int, ticket int64, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := &w.nodes[node]; !w.outdated(ticket) && !n.woken {
		n.freeAt = now.Add(clock.Sum(d, time.Millisecond))
		w.signal()
	}
}

// Subscribed records that a node can wake us from now on.
func (w *Wait) Subscribed(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.nodes[node]
	n.entry, n.retryAt = n.entry.subscribed(), time.Time{}
	w.signal()
}

// Unsubscribed records that a node cannot wake us any more. The entry is asked for again once it
// can.
func (w *Wait) Unsubscribed(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.nodes[node]
	n.entry = n.entry.unsubscribed()
	w.signal()
}

// NoQueue records that a node does not let the client queue.
func (w *Wait) NoQueue(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[node].noQueue = true
}

// Unanswered takes the votes of a finished round, and records the nodes that failed: they did
// not answer in time, or the round was decided before they were asked.
func (w *Wait) Unanswered(now time.Time, kind protocol.Kind, ticket int64, votes []quorum.Ballot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outdated(ticket) {
		return
	}
	for _, v := range votes {
		if v.Final != quorum.Failed {
			continue
		}
		n := &w.nodes[v.Node]
		sent := !errors.Is(v.Err, quorum.ErrNotSent)
		// An Enqueue that its lane could not send in time has shown nothing either.
		silent := sent || kind == protocol.Enqueue
		n.silent = n.silent || silent
		if w.look.pending && v.Node == w.look.node && silent {
			w.look.pending = false
			if !w.allSilent() { // the look has shown nothing: the next node is asked at once
				w.look.at, w.look.pause = now, w.look.pause/2
			}
		}
		if n.entry.pending() {
			n.entry, n.retryAt = n.entry.unanswered(), now
			if sent {
				n.retryAt = now.Add(retryAfter)
			}
		}
	}
	w.signal()
}
