package asynclog

import (
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// keep is for how many events the memory is used again.
const keep = 1 << 12

// patience is how long Close waits for a callback that blocks.
const patience = time.Second

// Queue passes what is put into it to a callback of the program: one at a time, in order, on a
// goroutine that lives as long as there is something to pass on. The goroutines that end locks on
// time, or carry the operations of all locks, must not wait for a log file, nor die of a panic in a
// callback.
type Queue[E any] struct {
	limit    int // Offer's
	pass     func(*E)
	panicked func(any)
	running  sync.WaitGroup

	mu     sync.Mutex
	active bool // there is a goroutine
	closed bool
	events []E

	// The goroutine's own: the events that it has taken, and how many of them it has passed on.
	batch  []E
	passed int
}

// NewQueue makes a Queue with the callback pass. panicked is called with what pass panicked with.
func NewQueue[E any](limit int, pass func(*E), panicked func(any)) *Queue[E] {
	return &Queue[E]{limit: limit, pass: pass, panicked: panicked}
}

// Put adds an event. It never blocks, and may be used with locks held. After Close it does nothing.
func (q *Queue[E]) Put(e E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(1, func(_ int, added *E) { *added = e })
}

// Offer is Put with a limit: if as many events are waiting as NewQueue allows, it adds nothing and
// returns false. Those that the goroutine has already taken do not count.
func (q *Queue[E]) Offer(e E) bool {
	return q.OfferAll(1, func(_ int, added *E) { *added = e }) == 1
}

// OfferAll is Offer for n events at once. It adds as many as fit, from the first on, and calls set with
// the index of each and a pointer to the zero event to fill in. It returns how many fit.
func (q *Queue[E]) OfferAll(n int, set func(i int, added *E)) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = max(min(n, q.limit-len(q.events)), 0)
	q.add(n, set)
	return n
}

// add adds n events; mu is held.
func (q *Queue[E]) add(n int, set func(i int, added *E)) {
	if q.closed || n == 0 {
		return
	}
	first := len(q.events)
	q.events = slices.Grow(q.events, n)[:first+n] // take has cleared what is used again
	for i := range n {
		set(i, &q.events[first+i])
	}
	if !q.active {
		q.active = true
		q.running.Go(q.run)
	}
}

// run passes events on until there are none. If the callback ends its goroutine, as a failed require
// in a test does, a new goroutine goes on.
func (q *Queue[E]) run() {
	exited := true
	defer func() {
		if exited {
			q.running.Go(q.run)
		}
	}()
	for q.take() {
		if panicked := Survive(q.passBatch); panicked != nil {
			q.panicked(panicked)
		}
	}
	exited = false
}

// passBatch passes on what is left of the batch.
func (q *Queue[E]) passBatch() {
	for q.passed < len(q.batch) {
		q.passed++
		q.pass(&q.batch[q.passed-1])
	}
}

// take moves the waiting events to batch. If there are none, it returns false, and the next event
// starts a new goroutine.
func (q *Queue[E]) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.passed == len(q.batch) {
		clear(q.batch)
		if cap(q.batch) > keep {
			q.batch = nil
		}
		q.batch, q.events, q.passed = q.events, q.batch[:0], 0
	}
	q.active = len(q.batch) > 0
	return q.active
}

// Survive calls f. It returns what f panicked with; nil if it did not.
func Survive(f func()) (panicked any) {
	defer func() { panicked = recover() }()
	f()
	return nil
}

// Close refuses further events, and returns when the others were passed on. It waits for at most a
// second, as a callback may block, or may itself have called Close.
func (q *Queue[E]) Close(clk clock.Clock) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		q.running.Wait()
		close(ended)
	}()
	timer := clk.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C():
	}
}
