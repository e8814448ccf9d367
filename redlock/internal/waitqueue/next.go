package waitqueue

import (
	"slices"
	"time"
)

const (
	// A wait looks by itself after firstLook, and then after pauses that double up to lastLook.
	// A thousand waits for keys that are held for long then cost less than a hundred commands a
	// second (docs/benchmarks.md).
	firstLook = time.Second
	lastLook  = 15 * time.Second
	// fullLook is how often each node is looked at, at least: twice in the three minutes for
	// which a node keeps an entry.
	fullLook = 75 * time.Second
	// wakeGrace is how long a node waits for a waiter that it has woken (wake.lua). Waiters that
	// look after that are inOrder apart.
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

// Action is what a wait does next.
type Action uint8

const (
	Sleep   Action = iota // until Step.At, or until Changed has a signal
	Try                   // to take the key, on all nodes
	Enqueue               // ask some nodes for a queue entry
	Probe                 // ask whether a majority answers, which takes nothing
)

// Step is what a wait does next.
type Step struct {
	Do       Action
	At       time.Time // of a Sleep: when it ends
	Nodes    []bool    // of an Enqueue: which nodes are asked
	Prompted bool      // of a Try: a majority has woken the wait
}

// Situation is the input of Next besides the replies and messages of the nodes.
type Situation struct {
	CanWake        func(node int) bool // whether the node's wake-ups arrive
	Counts         func(node int) bool // whether the node's vote counts
	QuarantineEnds time.Time           // when Counts changes next; zero: never
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
		w.waits.foreign.Note(w.nodeKey, now)
	}
	if w.raiseIt {
		return w.raise(now)
	}
	c := w.count(now, s)
	if c.free != w.free {
		w.free, w.freeSince = c.free, now
	}
	due := w.earliest(now, s, c)
	switch {
	case now.Before(due.At):
		return Step{Do: Sleep, At: due.At}
	case due.Do == Try:
		w.quarantineEnds = time.Time{}
		w.startTry()
		return Step{Do: Try, Prompted: c.free >= w.majority()}
	case due.Do == Enqueue && due.Nodes == nil:
		return Step{Do: Enqueue, Nodes: w.startLook(now)}
	case due.Do == Enqueue:
		w.freeSince = time.Time{}
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

// raise takes a higher ticket: our clock is slow, so waiters that came earlier have higher tickets
// than ours.
func (w *Wait) raise(now time.Time) Step {
	w.raiseIt = false
	w.raises++
	w.ticket = w.waits.tickets.next(now)
	all := slices.Repeat([]bool{true}, len(w.nodes))
	w.request(all)
	return Step{Do: Enqueue, Nodes: all}
}

// counts is a summary of the nodes.
type counts struct {
	canWake  int       // nodes that can wake us, and have a queue
	free     int       // nodes that have woken us, and whose vote counts
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
			c.free++
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

// earliest returns what is due first, and when. An Enqueue without nodes is a look.
func (w *Wait) earliest(now time.Time, s Situation, c counts) Step {
	need := w.majority()
	first := Step{Do: Enqueue, At: w.look.at}
	consider := func(do Action, at time.Time, nodes []bool) {
		if at.Before(first.At) {
			first = Step{Do: do, At: at, Nodes: nodes}
		}
	}
	if c.free >= need {
		consider(Try, w.notBefore, nil)
	}
	if !w.foreign.suspect.IsZero() {
		consider(Sleep, w.foreign.suspect.Add(onePicture), nil)
	}
	if w.foreign.near(now) && w.foreign.first {
		consider(Try, w.poll, nil)
	}
	if c.canWake < need {
		consider(Try, w.poll, nil)
		if !w.quarantineEnds.IsZero() {
			consider(Try, w.quarantineEnds, nil)
		}
	} else if !s.QuarantineEnds.IsZero() {
		consider(Sleep, s.QuarantineEnds, nil)
	}
	if at := w.majorityFreeAt(s.Counts); !at.IsZero() {
		consider(Try, at, nil)
	}
	if c.lacking {
		consider(Enqueue, c.entryAt, c.noEntry)
	}
	if 0 < c.free && c.free < need && !w.freeSince.IsZero() {
		consider(Enqueue, w.freeSince.Add(min(w.waits.NodeTimeout, askOthers)), c.notWoken)
	}
	return first
}

// startTry records a try: it uses up the wake-ups, and asks each node for an entry if it refuses.
func (w *Wait) startTry() {
	w.free, w.freeSince = 0, time.Time{}
	for i := range w.nodes {
		n := &w.nodes[i]
		n.entry, n.woken, n.freeAt = n.entry.request(), false, time.Time{}
	}
}

// startLook chooses the nodes to look at: the next one that answered its last question. Silent
// nodes before it are asked too, as they may answer again.
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
	if w.foreign.near(now) {
		w.look.pause = firstLook // no message comes when we are the first
	}
	w.look.at = now.Add(w.look.pause)
	w.request(nodes)
	return nodes
}

// majorityFreeAt returns when, by the replies of the nodes, a majority of them has neither a
// key of another client nor a waiter ahead that may still come. It returns zero if that is
// unknown, or if a majority is free already.
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
