package quorum

import (
	"context"
	"sync/atomic"

	"github.com/quorumlock/redlock/clock"
)

// waiter is what a goroutine waits on for a decision. It is reused: a channel and a timer for
// each round would be half of an operation's garbage.
//
// The timer calls a function, so that there is only one channel to wait on: a select over
// several takes a tenth of a busy client's time.
type waiter[T any] struct {
	decided chan struct{} // holds the one token that the decision sends
	timer   clock.Timer
	round   atomic.Pointer[Round[T]] // the round that is waited for; nil if none
}

// waiter returns an unused waiter.
func (g *Group[T]) waiter() *waiter[T] {
	w, ok := g.waiters.Get().(*waiter[T])
	if !ok {
		w = &waiter[T]{decided: make(chan struct{}, 1)}
		w.timer = g.clock.AfterFunc(g.timeout, w.late)
	}
	return w
}

// wait returns when r has been decided; r.waiter must be w.
func (w *waiter[T]) wait(ctx context.Context, r *Round[T]) {
	w.round.Store(r)
	w.timer.Reset(r.remaining())
	if done := ctx.Done(); done == nil {
		<-w.decided
	} else {
		select {
		case <-w.decided:
		case <-done:
			r.abandon()
			<-w.decided // by us, or just before by somebody else
		}
	}
	w.timer.Stop()
	w.round.Store(nil)
}

// late expires the round if its time is over. Otherwise it sets the timer again: it may be an
// earlier round's, stopped too late, or fire slightly early on a clock other than the
// system's. If the waiter moves to another round meanwhile, late sets the timer for that round
// too, which may end sooner.
func (w *waiter[T]) late() {
	for r := w.round.Load(); r != nil; {
		left := r.remaining()
		if left <= 0 {
			r.Expire()
			return
		}
		w.timer.Reset(left)
		now := w.round.Load()
		if now == r {
			return
		}
		r = now
	}
}
