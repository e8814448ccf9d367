package quorum

import (
	"errors"
	"time"
)

// This file has what the caller of a round sees of it: what the round asks, and what came of it.
// round.go has how the votes decide.

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

	// Sure makes a round that can no longer be won wait for votes that may still make it
	// [Tally.Rejected]. Its caller then knows whether a repetition could win. If the round is
	// rejected none can, even if all nodes that failed grant the next time.
	Sure bool

	// Within is how long the round may stay undecided; zero means the group's timeout. Votes
	// count until then, and a lane drops a call that it has not sent by then. Once the round
	// is decided, a lane has the group's timeout left to send its call: a node far behind the
	// others must not collect rounds that they have decided.
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

// Ballot is one node's vote in a round and what came with it.
type Ballot struct {
	Node    int
	Vote    Vote          // the vote that was counted; Pending if the round was decided without it
	Final   Vote          // how the call ended, perhaps after the decision
	Reply   int64         // the number that the node answered; 0 without an answer
	Err     error         // why the node failed or refused
	Latency time.Duration // from the round's start to the vote; without Spec.Timed see Votes.Latency
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
