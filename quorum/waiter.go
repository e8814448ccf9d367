package quorum

import (
	"context"
	"sync/atomic"

	"github.com/quorumlock/redlock/clock"
)

// waiter is what a goroutine waits on for a decision. One is used for many
// rounds: a channel and a timer for each would be half of an operation's garbage.
//
// The timer calls a function instead of ticking on a channel, so that there is one
// channel to wait on: a select of several takes a tenth of a busy client's time.
type waiter[T any] struct {
	decided chan struct{} // holds the one token that the decision sends
	timer   clock.Timer
	round   atomic.Pointer[Round[T]] // that is waited for
}

// waiter is one that nobody uses.
func (g *Group[T]) waiter() *waiter[T] {
	w, ok := g.waiters.Get().(*waiter[T])
	if !ok {
		w = &waiter[T]{decided: make(chan struct{}, 1)}
		w.timer = g.clock.AfterFunc(g.timeout, w.late)
	}
	return w
}

// wait returns when r, whose waiter w is, has been decided.
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

// late ends the wait for the nodes that have not voted. The timer may be an earlier
// round's, stopped too late, or a touch early by a clock that is not the system's:
// then the round has time left. Should the waiter change hands while late arms the
// timer for one round, it arms it for the next as well, which may end sooner.
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
