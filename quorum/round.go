package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// Reasons why a node's vote failed although nothing is known of the node.
var (
	ErrNoAnswer  = errors.New("no answer in time")
	ErrAbandoned = errors.New("no answer before the caller left")
	ErrNotSent   = errors.New("was not asked: decided before")
	ErrBacklog   = errors.New("was not asked: too many operations wait for it")
	ErrClosed    = errors.New("was not asked: closed")

	// ErrVotedTwice is the failure of a voter that has already granted as another node.
	ErrVotedTwice = errors.New("has voted as another node")
)

// Spec says what a round asks, and which nodes.
type Spec[T any] struct {
	Op T

	// Nodes selects the nodes to ask; nil selects all of them. A node that is not asked counts
	// as a refusal.
	Nodes []bool

	// Timed makes the round record when each vote came; see Ballot.Latency.
	Timed bool

	// All makes the round wait for every vote, not just until a majority is certain.
	All bool

	// Sure makes a round that can no longer be won wait for votes that may yet show that it is
	// [Tally.Rejected]. A retry before that would be in vain: the nodes that granted and those
	// that failed are no majority.
	Sure bool

	// Within is how long the round may stay undecided; zero means the group's timeout. Votes
	// count until then. A lane drops a call that it has not sent by then, or within the
	// group's timeout of the decision: a node far behind the others must not collect rounds
	// that they have decided.
	Within time.Duration

	// KeepUntil, if set, keeps the round's calls until that time, whether or not a caller
	// still waits for them. The decision does not drop a kept call, and the lane repeats it
	// while its result is indeterminate, so the operation must be safe to repeat. The vote of
	// an indeterminate call fails only when its node is known to be unreachable, or the
	// round's time is over.
	//
	// If KeepUntil is zero, a call is sent at most once, and not at all once the round is lost
	// or out of time.
	KeepUntil time.Time

	// Decided, if set, is called once at the decision, and makes the round expire by itself
	// when Within is over; without it, a goroutine must Wait. Heard, if set, is called once
	// when every node that was asked has voted or is known to have failed. Done, if set, is
	// called after the last lane has finished with the round.
	//
	// The callbacks are called without a lock held, by a lane, a timer or Arm, and never by
	// Submit. They must not block.
	Decided func(*Round[T])
	Heard   func(*Round[T])
	Done    func(*Round[T])
}

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
	open    int        // calls that are not finished; -1 after Done was called
	unheard int        // calls without a vote or a known failure; -1 after Heard was called
	outcome Outcome
	held    bool // the round is held until Arm: no decision, no callbacks
	left    bool // the caller has left, which decided the round

	few [5]Call[T] // calls of a group of the usual size, to save an allocation
}

// Ballot is one node's vote in a round and what came with it.
type Ballot struct {
	Node    int
	Vote    Vote          // the vote that was counted; Pending if the round was decided without it
	Final   Vote          // how the call ended, perhaps after the decision
	Reply   int64         // the number that the node answered; 0 without an answer
	Err     error         // why the node failed or refused
	Latency time.Duration // from the round's start to the vote; 0 without Spec.Timed
	Sent    bool          // the operation was handed to the node's connection
}

// Op returns the round's operation. It must not be changed.
func (r *Round[T]) Op() *T { return &r.spec.Op }

// Start returns the clock's reading from before the round was handed to any lane.
func (r *Round[T]) Start() time.Time { return r.start }

// Within returns how long after Start the round may stay undecided.
func (r *Round[T]) Within() time.Duration { return r.spec.Within }

// Decided returns the clock's reading at the decision, or zero before it.
func (r *Round[T]) Decided() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end
}

// Tally returns the votes at the decision, or so far. The tally of a round that its caller
// left is open.
func (r *Round[T]) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Ballots returns the current votes of the nodes that were asked, in the order of the nodes.
func (r *Round[T]) Ballots() []Ballot {
	r.mu.Lock()
	defer r.mu.Unlock()
	ballots := make([]Ballot, len(r.calls))
	for i := range r.calls {
		c := &r.calls[i]
		ballots[i] = Ballot{
			Node: c.node, Vote: c.vote, Final: c.final, Reply: c.reply, Err: c.err,
			Latency: c.latency, Sent: c.sent,
		}
	}
	return ballots
}

// Refused reports whether a node has refused, before the decision or after it.
func (r *Round[T]) Refused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.calls {
		if r.calls[i].final == Refused {
			return true
		}
	}
	return false
}

// Replied reports whether a node has answered the given number so far.
func (r *Round[T]) Replied(reply int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.calls {
		if r.calls[i].reply == reply {
			return true
		}
	}
	return false
}

// SentToAll reports whether every node was asked and its lane has sent the operation. If so,
// there is nothing to withdraw.
func (r *Round[T]) SentToAll() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.calls {
		if !r.calls[i].sent {
			return false
		}
	}
	return len(r.calls) == r.tally.N
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
	r.mu.Lock()
	r.drop(ErrNotSent)
	r.unlock()
}

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
	for i := range r.calls {
		switch c := &r.calls[i]; {
		case !left:
			r.count(c, Failed, 0, ErrNoAnswer)
		default:
			r.count(c, Pending, 0, ErrAbandoned)
		}
	}
	if !r.kept() {
		r.drop(ErrNotSent)
	}
	r.unlock()
}

// drop finishes the calls that no lane has taken; the lanes skip them. It needs mu; unlock
// with r.unlock.
func (r *Round[T]) drop(err error) {
	for i := range r.calls {
		if c := &r.calls[i]; c.state == queued {
			r.count(c, Failed, 0, err)
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
	wanting := false
	var w *waiter[T]
	if decides {
		r.end = r.group.clock.Now()
		w, r.waiter = r.waiter, nil
		wanting = r.tally.Unavailable()
		if r.outcome == Lost && !r.kept() {
			r.drop(ErrNotSent)
		}
	}
	hears, ends := r.unheard == 0, r.open == 0
	if hears {
		r.unheard = -1 // so that Heard is called once
	}
	if ends {
		r.open = -1
	}
	r.mu.Unlock()

	if wanting {
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
