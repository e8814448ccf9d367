package quorum

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// run is the lane's goroutine.
func (l *lane[T]) run(ctx context.Context) {
	defer l.transport.Rest()
	defer l.giveUp()

	busy := l.group.clock.Now()
	l.rest = l.group.clock.AfterFunc(idleRest, func() { l.ring(&l.rested) })
	defer l.rest.Stop()
	running := true // the rest timer runs: the Transport may have connections to give back
	l.repeat = l.group.clock.AfterFunc(lastRetry, func() { l.ring(&l.due) })
	defer l.repeat.Stop()
	l.repeat.Stop()
	l.pause = l.group.clock.AfterFunc(redial, func() { l.ring(&l.resumes) })
	defer l.pause.Stop()
	l.pause.Stop()

	many := false // the last batch had several calls
	for {
		switch l.pick() {
		case closed:
			return
		case quiet:
			if idle := l.group.clock.Now().Sub(busy); idle < idleRest {
				l.rest.Reset(idleRest - idle)
			} else {
				l.transport.Rest()
				running = false
			}
			continue
		case nothing:
			<-l.wake
			if many {
				runtime.Gosched() // for the same reason as below
			}
			continue
		}

		silent, voted, hung := false, false, false
		began := l.group.clock.Now()
		if l.claim(began) {
			many = len(l.live) > 1
			l.began.Store(int64(began.Sub(l.group.made)) + 1)
			l.transport.Carry(ctx, l.live)
			l.began.Store(0)
			busy = l.group.clock.Now()
			hung = busy.Sub(began) >= l.group.timeout
			if !running {
				running = true
				l.rest.Reset(idleRest)
			}
			silent, voted = l.settle(busy)
		}
		// Do not wait again for a node that hangs. If its connection broke, it may answer on
		// another, so it gets the calls that were queued behind.
		if closing := l.clear(voted, busy); closing && silent && (hung || l.last) {
			return
		}
		if len(l.undelivered) > 0 {
			l.repeat.Reset(l.retry)
		}
		if many {
			// Callers that were answered together may submit their next calls together, in one
			// batch. A lone caller does not wait for others.
			runtime.Gosched()
		}
	}
}

// ring is called by a timer: it sets why and wakes the lane.
func (l *lane[T]) ring(why *bool) {
	l.mu.Lock()
	*why = true
	l.signal()
}

type picked uint8

const (
	nothing picked = iota
	quiet          // nothing for a while
	something
	closed
)

// pick moves the next calls from the queue to batch, pending deliveries first because they are
// the oldest. With nothing to do, it marks the lane as waiting.
func (l *lane[T]) pick() picked {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, rested := l.due, l.rested
	l.due, l.rested = false, false
	if l.resumes || l.closing {
		l.resumes, l.pausing, l.down = false, false, nil
	}
	if l.pausing {
		l.due, l.rested, l.waiting = due, rested, true // keep them for the end of the pause
		return nothing
	}
	l.last = l.closing
	n := min(len(l.queue), maxBatch)
	if n > 0 || due || l.closing { // closing: the last chance for pending deliveries
		m := min(len(l.undelivered), maxBatch)
		if l.retry > 0 {
			m = min(m, fewPending) // the node has not answered: try a few first
		}
		l.batch = append(l.batch, l.undelivered[:m]...)
		l.undelivered = slices.Delete(l.undelivered, 0, m)
	}
	l.batch = append(l.batch, l.queue[:n]...)
	clear(l.queue[:n])
	if n == len(l.queue) {
		l.queue = l.queue[:0]
	} else {
		l.queue = l.queue[n:]
	}
	switch {
	case len(l.batch) > 0:
		l.rested = rested // handled once the queue is empty
		return something
	case l.closing:
		return closed
	case rested:
		return quiet
	}
	l.waiting = true
	return nothing
}

// claim moves the wanted calls of batch to live. It runs without mu: a call that ends may call
// its round's owner, which may submit the next one.
func (l *lane[T]) claim(now time.Time) bool {
	for _, c := range l.batch {
		if c.take(now) {
			l.live = append(l.live, c)
		}
	}
	return len(l.live) > 0
}

// settle finishes the calls that the Transport left unanswered, or makes them pending
// deliveries. It reports whether the node answered nothing, and whether it voted at all.
func (l *lane[T]) settle(now time.Time) (silent, voted bool) {
	lost, silent := false, true
	for _, c := range l.live {
		indeterminate, undelivered, vote := c.settle(now, &l.votes)
		lost, silent, voted = lost || indeterminate, silent && indeterminate, voted || vote
		if undelivered {
			l.undelivered = append(l.undelivered, c)
		}
	}
	clear(l.live)
	l.live = l.live[:0]
	if len(l.votes) > 0 {
		l.group.onVotes(l.votes)
		clear(l.votes)
		l.votes = l.votes[:0]
	}

	if len(l.undelivered) > maxBacklog {
		for _, c := range l.undelivered[maxBacklog:] {
			c.Fail(ErrBacklog)
		}
		l.undelivered = l.undelivered[:maxBacklog]
	}
	if lost {
		l.retry = min(max(2*l.retry, firstRetry), lastRetry)
	} else {
		l.retry = 0 // it answers again: send the pending deliveries at once
	}
	return silent, voted
}

// clear ends the batch, and reports whether the lane is closing. A node that voted in the
// batch counts as reachable, even if it was reported unreachable meanwhile.
func (l *lane[T]) clear(voted bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.batch)
	l.batch = l.batch[:0]
	if voted {
		l.down, l.dials = nil, 0
	}
	if l.down == nil || l.closing {
		return l.closing
	}
	if l.dials++; l.dials < fewDials {
		l.down = nil // the next batch may try again
		return false
	}
	l.length = min(redial<<min(l.dials-fewDials, 10), lastRedial)
	l.paused = now
	l.pausing = true
	l.pause.Reset(l.length)
	return l.closing
}

// giveUp fails the calls that are left when the lane ends.
func (l *lane[T]) giveUp() {
	l.mu.Lock()
	calls := append(l.undelivered, l.queue...)
	l.undelivered, l.queue = nil, nil
	l.mu.Unlock()
	for _, c := range calls {
		c.Fail(ErrClosed)
	}
}
