package redlock

import (
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// heard takes what a node has answered.
func (w *wait) heard(node int, a answer) {
	now := w.r.cfg.Clock.Now()
	behind := a.tail > 0 && w.r.tickets.behind(a.tail, now.UnixMicro())
	w.mu.Lock()
	defer w.mu.Unlock()
	stood := w.stands()
	s := &w.nodes[node]
	s.asked, s.plain, s.in = false, false, a.verdict != answerGranted && !s.early
	s.early = false
	s.until = time.Time{}
	switch {
	case a.verdict == answerFree || a.verdict == answerFenced:
		w.free(node)
	case a.left >= 0 && a.left < millis(forever):
		s.until = now.Add(time.Duration(a.left+1)*time.Millisecond + patience(a))
	}
	if a.verdict == answerAhead {
		w.doubt(s.until)
	}
	// Whose ticket is higher by our clock than now would have come after us all the same. Who
	// has stood in the queues is not moved behind somebody whose clock is ahead.
	if behind && !stood && a.tail > w.ticket && w.raises < maxRaises {
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
func patience(a answer) time.Duration {
	behind := time.Duration(min(a.ahead, 100)) * inOrder
	if a.verdict == answerHeld && a.ahead > 0 {
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

// woken takes a node's message that the key is ours to take. It reports false if the node
// ought to know that we do not wait any more.
func (w *wait) woken(node int, ticket int64) bool {
	now := w.r.cfg.Clock.Now()
	w.mu.Lock()
	if ticket < w.first || w.past(now) {
		w.mu.Unlock()
		return false
	}
	lock := w.lock
	w.free(node)
	w.signal()
	w.mu.Unlock()
	if lock != nil {
		lock.growInto(w.only(nil, node), w)
	}
	return true
}

// past reports that no message of a node can be late any more; mu is held.
func (w *wait) past(now time.Time) bool { return !w.ended.IsZero() && now.Sub(w.ended) >= lateFor }

func (w *wait) forgotten(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.past(now)
}

// free notes that the key is ours to take on a node; mu is held. An answer that says
// otherwise does not take it back: it may have been given before.
func (w *wait) free(node int) { w.nodes[node].free = true }

// owes takes note of what a try in vain is given back with: a place is asked for by the
// same command, for as long as that is repeated.
func (w *wait) owes(some, others []bool, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ask(some)
	w.ask(others)
	w.owed = until
}

// lost takes note that we cannot be woken by a node any more, and have to ask it for a
// place when we can again.
func (w *wait) lost(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.nodes[node]
	s.in = false
	w.signal()
}

// found takes note that we can be woken by a node. What it was asked before that may
// have dropped us since.
func (w *wait) found(node int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.nodes[node]
	s.early, s.in, s.again = s.asked, false, time.Time{}
	w.signal()
}

// failed takes note of the nodes that could not be asked, or were not, as it was decided
// without them.
func (w *wait) failed(round *quorum.Round[command]) {
	now := w.r.cfg.Clock.Now()
	ballots := round.Ballots()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range ballots {
		if s := &w.nodes[b.Node]; b.Final == quorum.Failed && s.asked {
			s.asked, s.early, s.again = false, false, now.Add(again)
			if errors.Is(b.Err, quorum.ErrNotSent) {
				s.again = now
			}
		}
	}
	w.signal()
}

// denied takes note that a node does not let us queue, with an error if it just said so.
func (w *wait) denied(node int, err error) {
	w.mu.Lock()
	w.nodes[node].plain = true
	w.mu.Unlock()
	if err != nil {
		w.r.ears.refused(node, err)
	}
}

// tried takes note that a try was in vain, for which reason, and sets the pause until the
// next one that nobody wakes us for; backoff is for so many in a row. Those who listen may
// need a moment when they are fresh.
func (w *wait) tried(reason error, backoff func(tries int) time.Duration, fresh bool) {
	now := w.r.cfg.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries++
	w.poor = reason != ErrHeld
	pause := backoff(w.tries)
	w.notBefore = time.Time{}
	switch {
	case w.poor:
		w.notBefore = now.Add(pause)
	case w.tries > 2: // others are quicker; but never as fast as nodes answer
		w.notBefore = now.Add(min(pause, firstPause))
	}
	if fresh {
		pause = max(pause, introduction)
	}
	w.poll = now.Add(pause)
}

// signal has whoever waits ask what is next; mu is held.
func (w *wait) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // an unread signal serves as well
	}
}
