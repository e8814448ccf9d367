package redlock

import (
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// wait is a Redlock's place in the queue for one key, with one ticket on all nodes. The
// lanes, the ears and timers tell it what they hear; next says what is to be done.
//
// Every message can get lost, and every node, so nothing depends on one: who waits for
// long looks by itself, and who is first looks when the holder's key expires. All that
// is sent may be sent twice. So what goes wrong costs time, and never a wake-up for good.
type wait struct {
	r       *Redlock
	key     string // as the caller names it
	name    string // as the nodes do
	value   string // of the last try, for the next to give back; its goroutine's
	queue   *queue
	who     any
	sharded any
	changed chan struct{} // holds one signal: next may say something else now

	mu     sync.Mutex
	over   bool
	lock   *Lock     // that it was won with
	ended  time.Time // when all nodes were told that we do not wait any more; zero: not yet
	ticket int64
	first  int64 // ticket, before it was raised
	raises int   // how often the ticket was raised
	raise  bool  // it has to be

	tries     int       // in vain, one after the other
	poor      bool      // the last one found no quorum, or was too late
	notBefore time.Time // of the next try, if nodes are free
	poll      time.Time // of the next try, if there is nobody to wake us
	looked    int       // the node that was looked at last
	look      time.Time // at the next
	pause     time.Duration
	ends      time.Time // of a quarantine, which is worth a try
	some      time.Time // since when some nodes, but no majority, have been free; zero: not

	nodes []standing
}

// standing is what is known of our place on one node.
type standing struct {
	asked bool      // for one; zero again if that failed
	again time.Time // when to ask again after that
	in    bool      // we have it
	free  bool      // we were told that the key is ours to take, since we last tried to
	until time.Time // when that may be, at the latest; zero: nobody knows
	ahead int64     // how many were ahead of us
	plain bool      // it has no queue for us
}

const (
	// firstLook is after how long a wait looks by itself; then it does so each time after
	// as long again as it has waited, up to lastLook. A thousand waits for keys that are
	// held for long then cost less than a hundred commands a second (docs/benchmarks.md).
	firstLook = time.Second
	lastLook  = 15 * time.Second
	// fullLook is how often each node is to be looked at, at least: twice in the three
	// minutes for which a node keeps a place.
	fullLook = 75 * time.Second
	// yield is how much longer those who are not first wait before they look whether a
	// key that should have expired has, for each who is ahead of them: as long as a
	// node gives whom it has woken.
	yield = time.Second
	// again is the pause after a node could not be asked for a place.
	again = time.Second
	// leaveFor is how long a node is told that we have left, if it does not answer.
	leaveFor = 10 * time.Second
	// maxRaises is how often a wait takes a higher ticket because its clock is behind.
	maxRaises = 3
)

func (r *Redlock) newWait(key string) *wait {
	name := r.cfg.KeyPrefix + key
	now := r.cfg.Clock.Now()
	w := &wait{
		r: r, key: key, name: name, queue: queueOf(name), changed: make(chan struct{}, 1),
		ticket: r.tickets.next(now.UnixMicro()),
		nodes:  make([]standing, len(r.nodes)),
		pause:  firstLook, look: now.Add(firstLook),
		looked: int(r.random.below(time.Duration(len(r.nodes)))),
	}
	w.first = w.ticket
	w.who, w.sharded = r.names(name)
	return w
}

// stance is what our commands say of us; value is to be given back.
func (w *wait) stance(value string) *stance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &stance{wait: w, who: w.who, sharded: w.sharded, ticket: ticketText(w.ticket), old: value}
}

type action uint8

const (
	sleep action = iota
	try          // to take the key, on all nodes
	stand        // in the queue of some nodes
)

// step is what is to be done at a time.
type step struct {
	do    action
	at    time.Time
	nodes []bool // to stand on
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
	if w.raise {
		w.raise = false
		w.raises++
		w.ticket = w.r.tickets.next(now.UnixMicro())
		all := slices.Repeat([]bool{true}, n)
		w.ask(all)
		return step{do: stand, nodes: all}
	}

	hearing, free := 0, 0
	absent, rest := make([]bool, n), make([]bool, n)
	var missing *time.Time // since when a place could have been asked for
	for i := range w.nodes {
		s := &w.nodes[i]
		if rest[i] = !(s.free && counts(i)); !rest[i] {
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

	best := step{do: stand, at: w.look}
	consider := func(do action, at time.Time, nodes []bool) {
		if at.Before(best.at) {
			best = step{do: do, at: at, nodes: nodes}
		}
	}
	if free >= need {
		consider(try, w.notBefore, nil)
	}
	if hearing < need || w.poor {
		consider(try, w.poll, nil)
		if !w.ends.IsZero() {
			consider(try, w.ends, nil)
		}
	} else if !ends.IsZero() {
		consider(sleep, ends, nil)
	}
	if at := w.expiry(need); !at.IsZero() {
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
		w.trying()
	case best.nodes == nil:
		best.nodes = make([]bool, n)
		w.looked = (w.looked + 1) % n
		best.nodes[w.looked] = true
		w.pause = min(2*w.pause, lastLook, fullLook/time.Duration(n))
		w.look = now.Add(w.pause)
		w.ask(best.nodes)
	default:
		w.some = time.Time{}
		w.ask(best.nodes)
	}
	return best
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
	w.some = time.Time{}
	for i := range w.nodes {
		s := &w.nodes[i]
		s.asked, s.free, s.until = true, false, time.Time{}
	}
}

// expiry is when a majority may have no key of anybody any more, or nobody who is
// ahead and does not come; zero if that cannot be said. mu is held.
func (w *wait) expiry(need int) time.Time {
	var until []time.Time
	var ahead []int64
	for _, s := range w.nodes {
		if s.free || !s.until.IsZero() {
			until = append(until, s.until)
			ahead = append(ahead, s.ahead)
		}
	}
	if len(until) < need {
		return time.Time{}
	}
	slices.SortFunc(until, time.Time.Compare)
	slices.Sort(ahead)
	at := until[need-1]
	if at.IsZero() {
		return at // they are free: next knows
	}
	return at.Add(time.Duration(min(ahead[need-1], int64(fullLook/yield))) * yield)
}

// heard takes what a node has answered.
func (w *wait) heard(node int, a answer) {
	now := w.r.cfg.Clock.Now()
	behind := a.tail > 0 && w.r.tickets.behind(a.tail, now.UnixMicro())
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.nodes[node]
	s.asked, s.in, s.ahead = false, a.verdict != answerGranted, a.ahead
	s.until = time.Time{}
	switch {
	case a.verdict == answerFree || a.verdict == answerFenced:
		w.free(node, now)
	case a.left >= 0 && a.left < millis(forever):
		s.until = now.Add(time.Duration(a.left+1) * time.Millisecond)
	}
	// Whose ticket is higher by our clock than now would have come after us all the same.
	if behind && a.tail > w.ticket && w.raises < maxRaises {
		w.raise = true
	}
	w.signal()
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
	w.free(node, now)
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
func (w *wait) free(node int, now time.Time) {
	w.nodes[node].free = true
	if w.some.IsZero() {
		w.some = now
	}
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
	s.in, s.asked, s.again = false, false, time.Time{}
	w.signal()
}

// failed takes note of the nodes that could not be asked.
func (w *wait) failed(round *quorum.Round[command]) {
	now := w.r.cfg.Clock.Now()
	ballots := round.Ballots()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range ballots {
		if s := &w.nodes[b.Node]; b.Final == quorum.Failed && s.asked {
			s.asked, s.again = false, now.Add(again)
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
	if w.poor || w.tries > 1 {
		w.notBefore = now.Add(pause)
	}
	if fresh {
		pause = max(pause, introduction)
	}
	w.poll = now.Add(pause)
}

// won ends the wait with the lock. Nodes that granted it have no place of ours any more. On
// those that refused, as the release that woke us is still on its way there, we stand on:
// when it arrives the lock grows, and when the lock is released the place is given up.
func (w *wait) won(lock *Lock) {
	w.r.ears.end(w)
	w.mu.Lock()
	w.over, w.lock = true, lock
	var late []bool
	for i, s := range w.nodes {
		if s.in && s.free {
			late = w.only(late, i)
		}
	}
	w.mu.Unlock()
	if late != nil {
		lock.growInto(late, w)
	}
}

// only adds a node to some.
func (w *wait) only(nodes []bool, node int) []bool {
	if nodes == nil {
		nodes = make([]bool, len(w.nodes))
	}
	nodes[node] = true
	return nodes
}

// giveUp ends the wait without the lock.
func (w *wait) giveUp() {
	w.finish()
	w.r.ears.end(w)
	w.leave(w.value)
}

// finish is for when all nodes are being told that we do not wait any more.
func (w *wait) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.ended = true, w.r.cfg.Clock.Now()
}

// stand asks nodes for a place, and leave gives it up, for as long as a node may take to
// come round: where it cannot be said the place is lost when it is our turn.
func (w *wait) stand(nodes []bool) {
	w.r.start(quorum.Spec[command]{Op: w.command(kindStand, ""), Nodes: nodes, All: true, Done: w.failed})
}

func (w *wait) leave(value string) {
	keep := w.r.cfg.Clock.Now().Add(max(w.r.cfg.NodeTimeout, leaveFor))
	w.r.start(quorum.Spec[command]{Op: w.command(kindLeave, value), All: true, KeepUntil: keep})
}

func (w *wait) command(k kind, value string) command {
	return command{kind: k, resource: w.key, key: w.name, value: value, ttl: int64(0), queue: w.queue, stance: w.stance(value)}
}

// signal has whoever waits ask what is next; mu is held.
func (w *wait) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // an unread signal serves as well
	}
}
