package redlock

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

const (
	// firstLook is after how long a wait looks by itself; then it does so each time after
	// as long again as it has waited, up to lastLook. A thousand waits for keys that are
	// held for long then cost less than a hundred commands a second (docs/benchmarks.md).
	firstLook = time.Second
	lastLook  = 15 * time.Second
	// fullLook is how often each node is to be looked at, at least: twice in the three
	// minutes for which a node keeps a place.
	fullLook = 75 * time.Second
	// yield is for how long a node waits for whom it has woken (wake.lua), and inOrder
	// keeps those who look after that apart.
	yield   = time.Second
	inOrder = 10 * time.Millisecond
	// again is the pause after a node could not be asked for a place.
	again = time.Second
	// maxRaises is how often a wait takes a higher ticket because its clock is behind.
	maxRaises = 3
)

type action uint8

const (
	sleep action = iota
	try          // to take the key, on all nodes
	stand        // in the queue of some nodes
	probe        // whether a majority answers
)

// step is what is to be done at a time.
type step struct {
	do       action
	at       time.Time
	nodes    []bool // to stand on
	prompted bool   // a majority has woken us
}

// next decides what is to be done, and takes note that it will be if its time has come.
// Otherwise it says to sleep until then, unless something changes. hears tells on which
// nodes we can be woken, counts on which votes count, and ends when that next changes.
func (w *wait) next(now time.Time, hears, counts func(node int) bool, ends time.Time) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends.IsZero() || now.Before(w.ends) {
		w.ends = ends
	}
	n := len(w.nodes)
	need := quorum.Size(n)
	if w.phase == outside {
		at := w.poll
		if !w.ends.IsZero() && w.ends.Before(at) {
			at = w.ends
		}
		if now.Before(at) {
			return step{do: sleep, at: at}
		}
		w.ends = time.Time{}
		return step{do: probe}
	}
	if w.foreign.found(now) {
		w.r.foreigners.note(w.name, now)
	}
	if w.raise {
		w.raise = false
		w.raises++
		w.ticket = w.r.tickets.next(now)
		all := slices.Repeat([]bool{true}, n)
		w.ask(all)
		return step{do: stand, nodes: all}
	}

	hearing, free := 0, 0
	absent, rest := make([]bool, n), make([]bool, n)
	var missing *time.Time // since when a place could have been asked for
	for i := range w.nodes {
		s := &w.nodes[i]
		rest[i] = !s.free
		if s.free && counts(i) {
			free++
		}
		if !hears(i) || s.plain {
			continue
		}
		hearing++
		if !s.asked && !s.in && (missing == nil || s.again.Before(*missing)) {
			missing = &s.again
		}
		absent[i] = !s.asked && !s.in && !now.Before(s.again)
	}

	if free != w.freed {
		w.some = now
	}
	w.freed = free

	best := step{do: stand, at: w.look}
	consider := func(do action, at time.Time, nodes []bool) {
		if at.Before(best.at) {
			best = step{do: do, at: at, nodes: nodes}
		}
	}
	if free >= need {
		consider(try, w.notBefore, nil)
	}
	if !w.foreign.suspect.IsZero() {
		consider(sleep, w.foreign.suspect.Add(onePicture), nil)
	}
	if w.foreign.near(now) && w.foreign.first {
		consider(try, w.poll, nil)
	}
	if hearing < need {
		consider(try, w.poll, nil)
		if !w.ends.IsZero() {
			consider(try, w.ends, nil)
		}
	} else if !ends.IsZero() {
		consider(sleep, ends, nil)
	}
	if at := w.expiry(need, counts); !at.IsZero() {
		consider(try, at, nil)
	}
	if missing != nil {
		consider(stand, *missing, absent)
	}
	if 0 < free && free < need && !w.some.IsZero() {
		consider(stand, w.some.Add(min(w.r.cfg.NodeTimeout, defaultNodeTimeout)), rest)
	}

	switch {
	case now.Before(best.at):
		best.do = sleep
	case best.do == try:
		w.ends = time.Time{}
		best.prompted = free >= need
		w.trying()
	case best.nodes == nil:
		best.nodes = make([]bool, n)
		w.lookOn(best.nodes)
		w.pause = min(2*w.pause, lastLook, fullLook/time.Duration(n))
		if w.foreign.near(now) {
			w.pause = firstLook // nobody tells us when we are the first
		}
		w.look = now.Add(w.pause)
		w.ask(best.nodes)
	default:
		w.some = time.Time{}
		w.ask(best.nodes)
	}
	return best
}

// lookOn chooses the node to look at: the next that answered last. Those before it are asked
// on the way, as they may answer again. mu is held.
func (w *wait) lookOn(nodes []bool) {
	w.looking = true
	for range nodes {
		w.looked = (w.looked + 1) % len(nodes)
		nodes[w.looked] = true
		if !w.nodes[w.looked].mute {
			return
		}
	}
}

// ask takes note that nodes are asked for a place; mu is held.
func (w *wait) ask(nodes []bool) {
	for i, asked := range nodes {
		if asked {
			w.nodes[i].asked = true
		}
	}
}

// trying takes note of a try: what we were told before has been acted upon. mu is held.
func (w *wait) trying() {
	w.some, w.freed = time.Time{}, 0
	for i := range w.nodes {
		s := &w.nodes[i]
		s.asked, s.free, s.until = true, false, time.Time{}
	}
}

// expiry is when a majority may have no key of anybody any more, or nobody who is
// ahead and does not come; zero if that cannot be said. mu is held.
func (w *wait) expiry(need int, counts func(node int) bool) time.Time {
	var until []time.Time
	for i, s := range w.nodes {
		if s.free && counts(i) || !s.free && !s.until.IsZero() {
			until = append(until, s.until)
		}
	}
	if len(until) < need {
		return time.Time{}
	}
	slices.SortFunc(until, time.Time.Compare)
	return until[need-1] // zero if so many are free: next knows
}
