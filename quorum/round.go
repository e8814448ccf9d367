package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// This file has how the votes of a round are counted, and when they decide it. spec.go has what a
// round asks and reports.

// Round is one operation that is sent to several nodes through their lanes.
type Round[T any] struct {
	spec   Spec[T]
	group  *Group[T]
	start  time.Time
	expiry clock.Timer // set for rounds with a Decided callback

	mu      sync.Mutex
	calls   []Call[T]
	tally   Tally      // does not change after the decision
	waiter  *waiter[T] // the waiter to wake at the decision; nil if there is none
	end     time.Time  // when the round was decided; zero before that
	open    int        // calls that are not finished; then ending, and ended
	unheard int        // calls without a vote or a known failure; -1 after Heard was called
	outcome Outcome
	held    bool   // the round is held until Arm: no decision, no callbacks
	left    bool   // the caller has left, which decided the round
	after   func() // set by AfterDone; nil: none

	few [5]Call[T] // calls of a group of the usual size, to save an allocation
}

// Wait returns when the round is decided, at the latest when [Spec.Within] is over or ctx
// ends. Votes missing at the end of Within have failed. Votes missing when ctx ends stay
// pending, with ErrAbandoned, because nothing is known of their nodes. Late answers are left
// to the lanes. Only one goroutine at a time may wait, after Arm.
func (r *Round[T]) Wait(ctx context.Context) {
	r.mu.Lock()
	if r.outcome != Open {
		r.mu.Unlock()
		return
	}
	w := r.group.waiter()
	r.waiter = w
	r.mu.Unlock()
	w.wait(ctx, r)
	r.group.waiters.Put(w)
}

// Withdraw drops the calls that no lane has sent yet. The round then sends nothing more, and
// Ballots reports where it was sent.
func (r *Round[T]) Withdraw() {
	now := r.group.clock.Now()
	r.mu.Lock()
	r.drop(now)
	r.unlock()
}

// Over reports whether the last lane has finished with the round, and Done has returned.
func (r *Round[T]) Over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open == ended
}

// AfterDone calls f as it calls [Spec.Done], when the last lane has finished with the round; at once
// if that was before. f is called after Done, and after what earlier calls of AfterDone have set.
func (r *Round[T]) AfterDone(f func()) {
	r.mu.Lock()
	if r.open == ended {
		r.mu.Unlock()
		f()
		return
	}
	if before := r.after; before != nil {
		r.after = func() { before(); f() }
	} else {
		r.after = f
	}
	r.mu.Unlock()
}

// What open is once all calls are finished.
const (
	ending = -1 - iota // Done is being called
	ended              // it has returned, or there is none
)

func (r *Round[T]) kept() bool { return !r.spec.KeepUntil.IsZero() }

// Arm lets the round be decided and call its callbacks, at once if they are due. It must be
// called once after [Group.Submit].
func (r *Round[T]) Arm() {
	r.mu.Lock()
	r.held = false
	r.unlock()
}

// remaining returns how much longer the round may stay undecided.
func (r *Round[T]) remaining() time.Duration {
	return r.spec.Within - r.group.clock.Now().Sub(r.start)
}

// stale reports whether it is too late to send a call of the round; mu is held.
func (r *Round[T]) stale(now time.Time) bool {
	return now.Sub(r.start) >= r.spec.Within ||
		r.outcome != Open && now.Sub(r.end) >= r.group.timeout
}

// Expire ends the round's time: missing votes fail, which decides the round. It does nothing
// to a decided round.
func (r *Round[T]) Expire() { r.stop(false) }

// abandon decides the round because its caller leaves. Missing votes stay pending: their nodes
// have not failed.
func (r *Round[T]) abandon() { r.stop(true) }

func (r *Round[T]) stop(left bool) {
	r.mu.Lock()
	if r.outcome != Open {
		r.mu.Unlock()
		return
	}
	r.left = left
	now := r.group.clock.Now()
	for i := range r.calls {
		switch c := &r.calls[i]; {
		case c.counted:
		case left:
			r.count(c, Pending, 0, ErrAbandoned)
		default:
			r.count(c, Failed, 0, ErrNoAnswer)
			c.record(Failed, c.err, now, nil)
		}
	}
	if !r.kept() {
		r.drop(now)
	}
	r.unlock()
}

// drop finishes, at now, the calls that no lane has taken; the lanes skip them. It needs mu; unlock
// with r.unlock.
func (r *Round[T]) drop(now time.Time) {
	for i := range r.calls {
		if c := &r.calls[i]; c.state == queued {
			r.count(c, Failed, 0, ErrNotSent)
			if r.group.lanes[c.node].hangs(now) {
				c.record(Failed, ErrNoAnswer, now, nil) // it would not have voted
			}
			c.end(Failed)
		}
	}
}

// count adds a node's first vote to the tally, and ignores later ones. Two majorities share a
// voter, and so exclude each other, only if no two nodes of a majority are the same voter.
//
// If an earlier answer was lost, its error says why. A refusal of the repetition is then no
// evidence: the node may have done it the first time.
func (r *Round[T]) count(c *Call[T], v Vote, reply int64, err error) {
	if c.counted {
		return
	}
	c.counted = true
	switch {
	case v == Granted && r.granted(c.voter):
		v, err = Failed, ErrVotedTwice
	case !c.lost:
	case v == Refused:
		v, err = Failed, c.err
	case err == ErrNoAnswer || err == ErrNotSent:
		err = c.err
	}
	if r.outcome == Open {
		c.vote = v
		r.tally.Add(v)
	}
	r.unheard--
	c.reply, c.err = reply, err
	if r.spec.Timed {
		c.latency = r.group.clock.Now().Sub(r.start)
	}
}

// granted reports whether a grant of this voter is already counted.
func (r *Round[T]) granted(voter Voter) bool {
	if voter == (Voter{}) {
		return false
	}
	for i := range r.calls {
		if c := &r.calls[i]; c.vote == Granted && c.voter == voter {
			return true
		}
	}
	return false
}

// unlock ends a change of the votes: it decides the round if that is due, releases mu, and
// calls the callbacks that follow. A lost round drops unsent calls, because nobody wants their
// grants.
func (r *Round[T]) unlock() {
	if r.held {
		r.mu.Unlock()
		return
	}
	decides := r.outcome == Open && r.due()
	unavailable := false
	var w *waiter[T]
	if decides {
		r.end = r.group.clock.Now()
		w, r.waiter = r.waiter, nil
		unavailable = r.tally.Unavailable()
		if r.outcome == Lost && !r.kept() {
			r.drop(r.end)
		}
	}
	hears, ends := r.unheard == 0, r.open == 0
	if hears {
		r.unheard = -1 // so that Heard is called once
	}
	var after func()
	if ends {
		r.open = ending
		if r.spec.Done == nil {
			r.open, after = ended, r.after
		}
	}
	r.mu.Unlock()

	if unavailable {
		r.group.hurry()
	}
	if w != nil {
		w.decided <- struct{}{} // does not block: each use of a waiter gets one token
	}
	if decides && r.spec.Decided != nil {
		r.expiry.Stop()
		r.spec.Decided(r)
	}
	if hears && r.spec.Heard != nil {
		r.spec.Heard(r)
	}
	if ends && r.spec.Done != nil {
		r.spec.Done(r)
		r.mu.Lock()
		r.open, after = ended, r.after
		r.mu.Unlock()
	}
	if after != nil {
		after()
	}
}

// due sets the outcome if the votes decide the round, and reports whether they do.
func (r *Round[T]) due() bool {
	if r.spec.All && r.tally.Pending() > 0 && !r.left {
		return false
	}
	r.outcome = r.tally.Outcome()
	if r.spec.Sure && r.outcome == Lost && r.tally.unsure() && !r.left {
		r.outcome = Open
	}
	if r.left && r.outcome == Open {
		r.outcome = Lost
	}
	return r.outcome != Open
}
