package asynclog

import (
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// patience is how long Close waits for a callback that blocks.
const patience = time.Second

// Queue passes what is put into it to a callback of the program: one at a time, in order, on a
// goroutine that lives as long as there is something to pass on. The goroutines that end locks on
// time, or carry the operations of all locks, must not wait for a log file, nor die of a panic in a
// callback.
type Queue[E any] struct {
	limit   int // Offer's
	pass    func(E)
	running sync.WaitGroup

	mu     sync.Mutex
	active bool // there is a goroutine
	closed bool
	events []E

	batch []E // what is left of the events that the goroutine has taken; its own
}

// NewQueue makes a Queue with the callback pass.
func NewQueue[E any](limit int, pass func(E)) *Queue[E] {
	return &Queue[E]{limit: limit, pass: pass}
}

// Put adds an event. It never blocks, and may be used with locks held. After Close it does nothing.
func (q *Queue[E]) Put(e E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(e)
}

// Offer is Put, but returns false and does nothing if the limit of events are waiting.
func (q *Queue[E]) Offer(e E) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) >= q.limit {
		return false
	}
	q.add(e)
	return true
}

func (q *Queue[E]) add(e E) {
	if q.closed {
		return
	}
	q.events = append(q.events, e)
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
		for len(q.batch) > 0 {
			e := q.batch[0]
			clear(q.batch[:1])
			q.batch = q.batch[1:]
			Survive(func() { q.pass(e) })
		}
	}
	exited = false
}

// take moves the waiting events to batch. If there are none, it returns false, and the next event
// starts a new goroutine.
func (q *Queue[E]) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.batch) == 0 {
		q.batch, q.events = q.events, nil
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
