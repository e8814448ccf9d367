package waitqueue

import (
	"slices"
	"time"
)

const (
	// A wait looks at a node after firstLook, and then after pauses that double up to lastLook.
	// A thousand waits for keys that are held for long then cost less than a hundred commands a
	// second (docs/benchmarks.md).
	firstLook = time.Second
	lastLook  = 15 * time.Second
	// fullLook is how often each node is looked at, at least: twice in the three minutes for
	// which a node keeps an entry.
	fullLook = 75 * time.Second
	// wakeGrace is how long a node waits for a waiter that it has woken (wake.lua). The waiters
	// behind it try after that, inOrder apart.
	wakeGrace = time.Second
	inOrder   = 10 * time.Millisecond
	// retryAfter is the pause after a node that was asked for an entry did not answer.
	retryAfter = time.Second
	// maxRaises is how often a wait takes a higher ticket because its clock is behind.
	maxRaises = 3
	// askOthers is how long after a minority has woken us the other nodes are asked, unless
	// NodeTimeout is shorter.
	askOthers = 200 * time.Millisecond
)

// Action is the kind of a Step.
type Action uint8

const (
	Sleep   Action = iota // until Step.At, or until Changed has a signal
	Try                   // take the key, on all nodes
	Enqueue               // ask some nodes for a queue entry, and so what they know of the key
	Probe                 // ask all nodes, without taking anything, whether a majority answers
)

// Step is what a wait does next.
type Step struct {
	Do       Action
	At       time.Time // when a Sleep ends
	Nodes    []bool    // the nodes that an Enqueue asks
	Prompted bool      // a majority has woken the wait, so it tries
}

// Situation is the input of Next besides the replies and messages of the nodes.
type Situation struct {
	CanWake        func(node int) bool // whether the node's wake-ups arrive
	Counts         func(node int) bool // whether the node's vote counts
	QuarantineEnds time.Time           // when the next quarantine ends, and Counts changes; zero: none
}

// Next returns the next step, and assumes that the caller takes it. If nothing is due, the step
// is to sleep until something is.
func (w *Wait) Next(now time.Time, s Situation) Step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quarantineEnds.IsZero() || now.Before(w.quarantineEnds) {
		w.quarantineEnds = s.QuarantineEnds
	}
	if w.phase == outside {
		return w.nextOutside(now)
	}
	if w.foreign.confirmed(now) {
		w.waits.foreignKeys.Note(w.nodeKey, now)
	}
	if w.raiseIt {
		return w.raise(now)
	}
	c := w.count(now, s)
	if c.wokenBy != w.wokenBy {
		w.wokenBy, w.wokenSince = c.wokenBy, now
	}
	due := w.earliest(now, s, c)
	switch {
	case now.Before(due.At):
		return Step{Do: Sleep, At: due.At}
	case due.Do == Try:
		w.quarantineEnds = time.Time{}
		w.startTry()
		return Step{Do: Try, Prompted: c.wokenBy >= w.majority()}
	case due.Do == Enqueue && due.Nodes == nil:
		return Step{Do: Enqueue, Nodes: w.startLook(now)}
	case due.Do == Enqueue:
		w.wokenSince = time.Time{}
		w.request(due.Nodes)
	}
	return due
}

func (w *Wait) nextOutside(now time.Time) Step {
	at := w.poll
	if !w.quarantineEnds.IsZero() && w.quarantineEnds.Before(at) {
		at = w.quarantineEnds
	}
	if now.Before(at) {
		return Step{Do: Sleep, At: at}
	}
	w.quarantineEnds = time.Time{}
	return Step{Do: Probe}
}

// raise takes a higher ticket: our clock is behind, so waiters that came earlier have higher
// tickets than ours.
func (w *Wait) raise(now time.Time) Step {
	w.raiseIt = false
	w.raises++
	w.ticket = w.waits.tickets.draw(now)
	all := slices.Repeat([]bool{true}, len(w.nodes))
	w.request(all)
	return Step{Do: Enqueue, Nodes: all}
}

// counts is a summary of the nodes.
type counts struct {
	canWake  int       // nodes that can wake us, and let us queue
	wokenBy  int       // nodes that have woken us, and whose vote counts
	notWoken []bool    // nodes that have not woken us
	noEntry  []bool    // nodes whose entry is absent, and may be asked for now
	entryAt  time.Time // the earliest time to ask for an absent entry
	lacking  bool      // some entry is absent
}

func (w *Wait) count(now time.Time, s Situation) counts {
	c := counts{notWoken: make([]bool, len(w.nodes)), noEntry: make([]bool, len(w.nodes))}
	for i, n := range w.nodes {
		c.notWoken[i] = !n.woken
		if n.woken && s.Counts(i) {
			c.wokenBy++
		}
		if n.noQueue || !s.CanWake(i) {
			continue
		}
		c.canWake++
		if n.entry == absent {
			if !c.lacking || n.retryAt.Before(c.entryAt) {
				c.lacking, c.entryAt = true, n.retryAt
			}
			c.noEntry[i] = !now.Before(n.retryAt)
		}
	}
	return c
}

// earliest returns the step that is due first, and since or from when. An Enqueue without nodes is
// a look. Of steps for the same time the one considered first is returned.
func (w *Wait) earliest(now time.Time, s Situation, c counts) Step {
	need := w.majority()
	// Whatever messages are lost, the wait looks now and then.
	due := Step{Do: Enqueue, At: w.look.at}
	consider := func(do Action, at time.Time, nodes []bool) {
		if at.Before(due.At) {
			due = Step{Do: do, At: at, Nodes: nodes}
		}
	}
	// A majority has woken the wait: it tries at once, or after a pause if other clients were
	// quicker several times.
	if c.wokenBy >= need {
		consider(Try, w.notBefore, nil)
	}
	// The key seems to have changed hands without a wake-up. If none has come by then, Next
	// takes that for the work of foreign clients.
	if !w.foreign.suspect.IsZero() {
		consider(Sleep, w.foreign.suspect.Add(onePicture), nil)
	}
	// Foreign clients wake nobody, so the first waiter polls beside them.
	if w.foreign.expected(now) && w.foreign.first {
		consider(Try, w.poll, nil)
	}
	if c.canWake < need {
		// No majority can wake the wait, so it polls. It also tries when one more vote counts.
		consider(Try, w.poll, nil)
		if !w.quarantineEnds.IsZero() {
			consider(Try, w.quarantineEnds, nil)
		}
	} else if !s.QuarantineEnds.IsZero() {
		// The node whose quarantine ends may have woken the wait: Next counts it then.
		consider(Sleep, s.QuarantineEnds, nil)
	}
	// The holder's key expires, or a woken waiter ahead misses its deadline, on a majority. That
	// sends no message.
	if at := w.majorityFreeAt(s.Counts); !at.IsZero() {
		consider(Try, at, nil)
	}
	// Nodes that could wake the wait do not have its entry.
	if c.lacking {
		consider(Enqueue, c.entryAt, c.noEntry)
	}
	// A minority has woken the wait. The messages of the others may be lost.
	if 0 < c.wokenBy && c.wokenBy < need && !w.wokenSince.IsZero() {
		consider(Enqueue, w.wokenSince.Add(min(w.waits.NodeTimeout, askOthers)), c.notWoken)
	}
	return due
}

// startTry records a try. It uses up the wake-ups, and also asks each node for an entry: a node
// that refuses adds it.
func (w *Wait) startTry() {
	w.wokenBy, w.wokenSince = 0, time.Time{}
	for i := range w.nodes {
		n := &w.nodes[i]
		n.entry, n.woken, n.freeAt = n.entry.request(), false, time.Time{}
	}
}

// startLook chooses the nodes to look at: the next one that answered its last question, and the
// silent ones before it, as they may answer again.
func (w *Wait) startLook(now time.Time) []bool {
	nodes := make([]bool, len(w.nodes))
	for range nodes {
		w.look.node = (w.look.node + 1) % len(nodes)
		nodes[w.look.node] = true
		if !w.nodes[w.look.node].silent {
			break
		}
	}
	w.look.pending = true
	w.look.pause = min(2*w.look.pause, lastLook, fullLook/time.Duration(len(nodes)))
	if w.foreign.expected(now) {
		w.look.pause = firstLook // no message comes when we have become the first waiter
	}
	w.look.at = now.Add(w.look.pause)
	w.request(nodes)
	return nodes
}

// majorityFreeAt returns when, by the replies of the nodes, a majority of them has neither a
// key of another client nor a waiter ahead that may still come. A node that has woken the wait is
// free already. The result is zero if the time is unknown, or if such a majority has woken the
// wait.
func (w *Wait) majorityFreeAt(countsVote func(node int) bool) time.Time {
	var at []time.Time
	for i, n := range w.nodes {
		if n.woken && countsVote(i) || !n.woken && !n.freeAt.IsZero() {
			at = append(at, n.freeAt)
		}
	}
	if len(at) < w.majority() {
		return time.Time{}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at[w.majority()-1]
}
