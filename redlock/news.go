package redlock

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/wakeup"
)

// Replied takes a node's reply to an operation of the wait.
func (w *wait) Replied(node int, op *protocol.Operation, r protocol.Reply) {
	if r.MoreDead {
		w.r.removeDead(node, op)
	}
	if r.Queued && (op.Kind == protocol.Acquire || op.Kind == protocol.Enqueue) {
		w.heard(node, op.Entry.Number, r.Queue)
	}
}

// heard takes what a node has answered to a command that had this ticket.
func (w *wait) heard(node int, ticket int64, q protocol.QueueReply) {
	now := w.r.cfg.Clock.Now()
	behind := q.Tail > 0 && w.r.tickets.behind(q.Tail, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.nodes[node]
	s.mute = false
	w.looking = w.looking && node != w.looked
	if w.gaveUp(ticket) {
		return // behind this command
	}
	stood := w.stands()
	w.foreign.heard(q, now)
	s.asked, s.plain, s.in = false, false, q.State != protocol.StateGranted && !s.early
	s.early = false
	s.until = time.Time{}
	switch {
	case q.State == protocol.StateFree || q.State == protocol.StateFenced:
		w.free(node)
	case q.Changes >= 0 && q.Changes < protocol.Millis(math.MaxInt64):
		s.until = now.Add(clock.Sum(protocol.Duration(q.Changes+1), patience(q)))
	}
	switch {
	case q.Changes == protocol.Missed && q.State != protocol.StateHeld:
		// Other nodes have not been asked, and wait for the same one. To try at once makes them
		// go on at the same time as this one; otherwise each waiter that did not come costs
		// a second on this node, and then another one on those.
		w.doubt(now)
	case q.State == protocol.StateAhead && !s.until.IsZero():
		w.doubt(s.until)
	}
	// Whose ticket is higher by our clock than now would have come after us all the same. Who
	// has stood in the queues is not moved behind somebody whose clock is ahead.
	if behind && !stood && q.Tail > w.ticket && w.raises < maxRaises {
		w.raise = true
	}
	w.signal()
}

// stands reports whether a majority of the nodes has our place; mu is held.
func (w *wait) stands() bool {
	in := 0
	for _, s := range w.nodes {
		if s.in {
			in++
		}
	}
	return in >= quorum.Size(len(w.nodes))
}

// patience is how much longer those who are not first wait before they look whether a key
// has expired: as long as a node gives whom it has woken, and a little in the order of the
// queue. Who is only behind somebody who was woken need not wait for him once more.
func patience(q protocol.QueueReply) time.Duration {
	behind := time.Duration(min(q.Ahead, 100)) * inOrder
	if q.State == protocol.StateHeld && q.Ahead > 0 {
		behind += yield
	}
	return behind
}

// doubt has us try when somebody who was woken on one node has not come by then: he may be
// dead, and dead on all. mu is held.
func (w *wait) doubt(until time.Time) {
	for i := range w.nodes {
		if s := &w.nodes[i]; !s.free && (s.until.IsZero() || s.until.After(until)) {
			s.until = until
		}
	}
}

// Woken takes a node's message that the key is ours to take. It reports false if the node
// ought to know that we do not wait any more.
func (w *wait) Woken(node int, ticket int64) bool {
	now := w.r.cfg.Clock.Now()
	w.mu.Lock()
	if w.gaveUp(ticket) || w.past(now) {
		w.mu.Unlock()
		return false
	}
	w.foreign.woken()
	lock := w.lock
	w.free(node)
	w.signal()
	w.mu.Unlock()
	if lock != nil {
		lock.growInto(w.only(nil, node), w)
	}
	return true
}

// Second takes a node's message that we are behind somebody whom it has woken, and has us
// look when its time is over: it may be dead, and nobody else may come.
func (w *wait) Second(ticket int64) {
	at := w.r.cfg.Clock.Now().Add(yield + inOrder)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ticket >= w.first && at.Before(w.look) {
		w.look = at
		w.signal()
	}
}

// Left reports that the nodes have been, or are being, told that the entry with this
// ticket is given up.
func (w *wait) Left(ticket int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended.IsZero() || w.gaveUp(ticket)
}

// gaveUp reports that the wait has given up its entry with this ticket, or will not have
// one; mu is held.
func (w *wait) gaveUp(ticket int64) bool { return w.phase == outside || ticket < w.first }

// lateFor is how long after its end the messages for a wait are taken to have crossed with what
// ended it, which has told all nodes. A later message shows that its node was not reached.
const lateFor = time.Second

// past reports that no message of a node can be late any more; mu is held.
func (w *wait) past(now time.Time) bool { return !w.ended.IsZero() && now.Sub(w.ended) >= lateFor }

// Over reports that no message for the wait can arrive any more.
func (w *wait) Over(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.past(now)
}

// free notes that the key is ours to take on a node; mu is held. An answer that says
// otherwise does not take it back: it may have been given before.
func (w *wait) free(node int) { w.nodes[node].free = true }

// owes takes note of until when the command is repeated that gives back what a try took,
// and of the nodes that it asks for a place.
func (w *wait) owes(until time.Time, places ...[]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, nodes := range places {
		w.ask(nodes)
	}
	w.owed = until
}

// Unsubscribed takes note that we cannot be woken by a node any more, and have to ask it for a
// place when we can again.
func (w *wait) Unsubscribed(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.nodes[node]
	s.in = false
	w.signal()
}

// Subscribed takes note that we can be woken by a node. What it was asked before that may
// have dropped us since.
func (w *wait) Subscribed(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.nodes[node]
	s.early, s.in, s.again = s.asked, false, time.Time{}
	w.signal()
}

// failed takes note of the nodes that could not be asked, or were not, as it was decided
// without them.
func (w *wait) failed(round *quorum.Round[protocol.Operation]) {
	now := w.r.cfg.Clock.Now()
	ballots := round.Ballots()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gaveUp(round.Op().Entry.Number) {
		return
	}
	for _, b := range ballots {
		s := &w.nodes[b.Node]
		if b.Final != quorum.Failed {
			continue
		}
		sent := !errors.Is(b.Err, quorum.ErrNotSent)
		// A look that its lane could not send in time has shown nothing either.
		mute := sent || round.Op().Kind == protocol.Enqueue
		s.mute = s.mute || mute
		if w.looking && b.Node == w.looked && mute {
			w.looking = false
			if !w.allMute() { // the look has shown nothing: the next node is asked at once
				w.look, w.pause = now, w.pause/2
			}
		}
		if s.asked {
			s.asked, s.early, s.again = false, false, now.Add(again)
			if !sent {
				s.again = now
			}
		}
	}
	w.signal()
}

func (w *wait) allMute() bool {
	return !slices.ContainsFunc(w.nodes, func(s standing) bool { return !s.mute })
}

// QueueDenied takes note that a node does not let us queue, with an error if it just said so.
func (w *wait) QueueDenied(node int, err error) {
	w.mu.Lock()
	w.nodes[node].plain = true
	w.mu.Unlock()
	if err != nil {
		w.r.subscriber.Denied(node, err)
	}
}

// tried takes note that a try was in vain, for which reason, and sets the pause until the
// next one that nobody wakes us for; backoff is for so many in a row. Those who listen may
// need a moment when they are fresh; prompted is of the step. A try that found no majority in time ends the wait's
// queue entry: its give-back has removed it (giveBack).
func (w *wait) tried(reason error, prompted bool, backoff func(tries int) time.Duration, fresh bool) {
	now := w.r.cfg.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	pause := backoff(w.tries)
	if reason != ErrHeld {
		w.stepOut(now, pause)
		return
	}
	w.vain = 0
	w.notBefore = time.Time{}
	if w.tries > 2 { // others are quicker; but never as fast as nodes answer
		w.notBefore = now.Add(min(pause, firstPause))
	}
	if prompted { // somebody was quicker; it may be one who does not wake us
		w.pause, w.look = firstLook, now.Add(firstLook)
	}
	if fresh {
		pause = max(pause, wakeup.Youth)
	}
	w.poll = now.Add(pause)
}

// stepOut has the wait stay outside of the queue until a majority answers, after a turn
// that found none in time. The first such turn may be an accident. After each further one
// in a row the wait stays out for twice as long, as its turns hold the others up for about
// a NodeTimeout each. mu is held.
func (w *wait) stepOut(now time.Time, pause time.Duration) {
	w.phase = outside
	w.poll = now.Add(pause)
	if w.vain++; w.vain > 1 {
		w.poll = now.Add(max(pause, min(w.r.cfg.NodeTimeout<<min(w.vain-1, 16), lastLook)))
	}
	w.foreign.forget()
}

// begin is stepOut for a wait whose first attempt found no majority, before it had a turn.
func (w *wait) begin(backoff func(tries int) time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.phase, w.tries = outside, 1
	w.poll = w.r.cfg.Clock.Now().Add(backoff(1))
}

// answered takes note of whether a majority has answered a probe. If so the wait queues
// again, as a newcomer does: those who came meanwhile are ahead.
func (w *wait) answered(majority bool, backoff func(tries int) time.Duration) {
	now := w.r.cfg.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	w.poll = now.Add(backoff(w.tries))
	if !majority {
		return
	}
	w.phase = queued
	w.ticket = w.r.tickets.next(now)
	w.first, w.raises, w.raise = w.ticket, 0, false
	w.freed, w.some, w.notBefore = 0, time.Time{}, time.Time{}
	w.pause, w.look = firstLook, now.Add(firstLook)
	for i := range w.nodes {
		w.nodes[i] = standing{mute: w.nodes[i].mute, plain: w.nodes[i].plain}
	}
}

// signal has whoever waits ask what is next; mu is held.
func (w *wait) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // an unread signal serves as well
	}
}
