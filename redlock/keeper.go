package redlock

import (
	"container/heap"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// keeper looks after all locks of a Redlock with one goroutine and one timer: it
// ends each at its Until and starts the renewals that are due. It never waits
// for a node, so a hung master cannot make it late.
type keeper struct {
	clock clock.Clock
	wake  chan struct{} // holds one wake-up
	done  chan struct{}

	mu      sync.Mutex
	locks   lockHeap
	armed   time.Time // what the timer is set for; zero: not set
	drained bool
}

func newKeeper(clk clock.Clock) *keeper {
	return &keeper{clock: clk, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// set has the lock ticked at due instead of when it was to be before. It takes
// a new lock in, and does nothing once the keeper is drained.
func (k *keeper) set(l *Lock, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drained {
		return
	}
	l.due = due
	if l.index < 0 {
		heap.Push(&k.locks, l)
	} else {
		heap.Fix(&k.locks, l.index)
	}
	if k.armed.IsZero() || due.Before(k.armed) {
		k.armed = due
		k.signal()
	}
}

func (k *keeper) signal() {
	select {
	case k.wake <- struct{}{}:
	default: // an unread wake-up serves as well
	}
}

// remove forgets a lock that has ended.
func (k *keeper) remove(l *Lock) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.index >= 0 {
		heap.Remove(&k.locks, l.index)
	}
}

// stop ends run, after the ticks that are under way.
func (k *keeper) stop() { close(k.done) }

// drain returns the locks that are still held, when run has ended.
func (k *keeper) drain() []*Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drained = true
	held := k.locks
	for _, l := range held {
		l.index = -1
	}
	k.locks = nil
	return held
}

// run ticks the locks that are due, until the keeper is stopped.
func (k *keeper) run() {
	timer := k.clock.NewTimer(time.Hour)
	defer timer.Stop()
	timer.Stop()
	var due []*Lock
	for {
		now := k.clock.Now()
		due = k.collect(now, due[:0])
		for _, l := range due {
			l.tick(now)
		}
		clear(due)
		if next, any := k.arm(); any {
			timer.Reset(next.Sub(k.clock.Now()))
		}
		select {
		case <-timer.C():
		case <-k.wake:
		case <-k.done:
			return
		}
	}
}

// collect takes the locks out that are due at now.
func (k *keeper) collect(now time.Time, due []*Lock) []*Lock {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.locks) > 0 && !now.Before(k.locks[0].due) {
		due = append(due, heap.Pop(&k.locks).(*Lock))
	}
	return due
}

// arm is what the timer must be set for next. The time is recorded, so that a
// lock that is due later than that need not wake the keeper.
func (k *keeper) arm() (next time.Time, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.locks) == 0 {
		k.armed = time.Time{}
		return k.armed, false
	}
	k.armed = k.locks[0].due
	return k.armed, true
}

// lockHeap is a container/heap by due time.
type lockHeap []*Lock

func (h lockHeap) Len() int           { return len(h) }
func (h lockHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h lockHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *lockHeap) Push(x any) {
	l := x.(*Lock)
	l.index = len(*h)
	*h = append(*h, l)
}

func (h *lockHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	l.index = -1
	return l
}
