package quorum

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// run is the lane's goroutine.
func (l *lane[T]) run(ctx context.Context) {
	defer l.carrier.Rest()
	defer l.giveUp()

	busy := l.clock.Now()
	l.rest = l.clock.AfterFunc(idleRest, func() { l.ring(&l.rested) })
	defer l.rest.Stop()
	running := true // the rest timer: the carrier may have something to give back
	l.repeat = l.clock.AfterFunc(lastRetry, func() { l.ring(&l.due) })
	defer l.repeat.Stop()
	l.repeat.Stop()
	l.pause = l.clock.AfterFunc(redial, func() { l.ring(&l.over) })
	defer l.pause.Stop()
	l.pause.Stop()

	many := false // the last batch had several calls
	for {
		switch l.pick() {
		case closed:
			return
		case quiet:
			if idle := l.clock.Now().Sub(busy); idle < idleRest {
				l.rest.Reset(idleRest - idle)
			} else {
				l.carrier.Rest()
				running = false
			}
			continue
		case nothing:
			<-l.wake
			if many {
				runtime.Gosched() // as below
			}
			continue
		}

		silent, voted, hung := false, false, false
		began := l.clock.Now()
		if l.claim(began) {
			many = len(l.live) > 1
			l.carrier.Carry(ctx, l.live)
			busy = l.clock.Now()
			hung = busy.Sub(began) >= l.timeout
			if !running {
				running = true
				l.rest.Reset(idleRest)
			}
			silent, voted = l.settle(busy)
		}
		// A node that hangs is not waited for again. One whose connection broke
		// may answer on another: it gets what was queued behind.
		if closing := l.clear(voted, busy); closing && silent && (hung || l.final) {
			return
		}
		if len(l.owed) > 0 {
			l.repeat.Reset(l.retry)
		}
		if many {
			// Let those who were answered together come with their next calls
			// together: they share a batch. A lone caller waits for nobody.
			runtime.Gosched()
		}
	}
}

// ring is what a timer does: it says why, and wakes the lane.
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

// pick moves the next calls from the queue to batch: the owed ones first, as
// they are the oldest. With nothing to do the lane is marked as waiting.
func (l *lane[T]) pick() picked {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, rested := l.due, l.rested
	l.due, l.rested = false, false
	if l.over || l.closing {
		l.over, l.pausing, l.down = false, false, nil
	}
	if l.pausing {
		l.due, l.rested, l.waiting = due, rested, true // for when it is over
		return nothing
	}
	l.final = l.closing
	n := min(len(l.queue), maxBatch)
	if n > 0 || due || l.closing { // the last chance of what is owed
		m := min(len(l.owed), maxBatch)
		if l.retry > 0 {
			m = min(m, fewOwed) // the node has not answered: find out with a few
		}
		l.batch = append(l.batch, l.owed[:m]...)
		l.owed = slices.Delete(l.owed, 0, m)
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
		l.rested = rested // looked at when there is time for it
		return something
	case l.closing:
		return closed
	case rested:
		return quiet
	}
	l.waiting = true
	return nothing
}

// claim takes the calls of batch that are still wanted. It runs without mu:
// ending a call may call its round's owner, who may submit the next one.
func (l *lane[T]) claim(now time.Time) bool {
	for _, c := range l.batch {
		if c.take(now) {
			l.live = append(l.live, c)
		}
	}
	return len(l.live) > 0
}

// settle ends what the carrier left open or puts it aside as owed. It reports
// whether the node left everything unanswered, and whether it voted at all.
func (l *lane[T]) settle(now time.Time) (silent, voted bool) {
	lost, silent := false, true
	for _, c := range l.live {
		open, owed, vote := c.settle(now)
		lost, silent, voted = lost || open, silent && open, voted || vote
		if owed {
			l.owed = append(l.owed, c)
		}
	}
	clear(l.live)
	l.live = l.live[:0]

	if len(l.owed) > maxBacklog {
		for _, c := range l.owed[maxBacklog:] {
			c.Fail(ErrBacklog)
		}
		l.owed = l.owed[:maxBacklog]
	}
	if lost {
		l.retry = min(max(2*l.retry, firstRetry), lastRetry)
	} else {
		l.retry = 0 // it answers again: what is still owed goes at once
	}
	return silent, voted
}

// clear ends the batch. It reports whether the lane is closing. A node that was out
// of reach, by what was heard during the batch, and voted all the same is not.
func (l *lane[T]) clear(voted bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.batch)
	l.batch = l.batch[:0]
	if voted {
		l.down, l.refused = nil, 0
	}
	if l.down == nil || l.closing {
		return l.closing
	}
	if l.refused++; l.refused < fewDials {
		l.down = nil // the next may try again
		return false
	}
	l.length = min(redial<<min(l.refused-fewDials, 10), lastRedial)
	l.paused = now
	l.pausing = true
	l.pause.Reset(l.length)
	return l.closing
}

// giveUp ends everything that is left when the lane ends.
func (l *lane[T]) giveUp() {
	l.mu.Lock()
	calls := append(l.owed, l.queue...)
	l.owed, l.queue = nil, nil
	l.mu.Unlock()
	for _, c := range calls {
		c.Fail(ErrClosed)
	}
}
