package quorum

import (
	"time"
	"unique"
)

// Call is one round's operation on one node. A [Carrier] answers each call of a
// batch with exactly one of Grant, Refuse, Fail, Lose and Unsent. An answer after the
// round's decision changes nothing for the decision.
type Call[T any] struct {
	round *Round[T]
	node  int

	// Guarded by round.mu.
	state   callState
	sent    bool // its node may have executed it
	counted bool // with vote
	lost    bool // it was sent, err says why its answer was lost, and it is kept
	vote    Vote // as counted
	final   Vote // as answered in the end
	reply   int64
	err     error
	latency time.Duration

	// Written by the lane's goroutine before it answers, and read by others only
	// behind the Granted that they see in vote.
	voter Voter
}

// Voter is the identity behind a node, by which a round knows that two nodes are one
// voter. The zero Voter is not known, and equals no other.
type Voter = unique.Handle[string]

// By says which voter gives the answers that follow. A round counts one grant of each
// voter, whichever nodes it speaks for: a second one fails with [ErrVotedTwice].
func (c *Call[T]) By(voter Voter) {
	if c.voter != voter { // a call that is answered twice is not written again
		c.voter = voter
	}
}

type callState uint8

const (
	queued   callState = iota // no lane has sent it
	taken                     // in a batch that is under way
	finished                  // nothing more will happen to it
)

// Op is what the node is asked. It must not be changed: the other nodes are asked
// the same.
func (c *Call[T]) Op() *T { return &c.round.spec.Op }

// Node is the node that is asked, by its place in the group.
func (c *Call[T]) Node() int { return c.node }

// Grant reports that the node did it: there is positive evidence in its reply.
func (c *Call[T]) Grant(reply int64) { c.finish(Granted, reply, nil) }

// Refuse reports that the node answered that it would not.
func (c *Call[T]) Refuse(reply int64, err error) { c.finish(Refused, reply, err) }

// Fail reports that the node did not do it, and never will.
func (c *Call[T]) Fail(err error) { c.finish(Failed, 0, err) }

// Lose reports that nobody knows: it may have been done, or may be yet. The vote has
// failed, but for a call that is kept: that is sent again, and may be answered within the
// round's time.
func (c *Call[T]) Lose(err error) {
	r := c.round
	r.mu.Lock()
	switch {
	case c.state == finished:
	case !r.kept():
		r.count(c, Failed, 0, err)
	case !c.counted:
		c.lost, c.err = true, err
	}
	r.unlock()
}

// Unsent reports that the node did not do it, as it was not reached or did not accept it.
// The vote has failed. A call that is kept will be sent again all the same.
func (c *Call[T]) Unsent(err error) {
	r := c.round
	r.mu.Lock()
	if c.state != finished {
		r.count(c, Failed, 0, err)
	}
	if !r.kept() {
		c.sent = false
		if c.state != finished {
			c.end(Failed)
		}
	}
	r.unlock()
}

func (c *Call[T]) finish(v Vote, reply int64, err error) {
	r := c.round
	r.mu.Lock()
	if c.state != finished {
		r.count(c, v, reply, err)
		c.end(v)
	}
	r.unlock()
}

// end closes the call; mu is held.
func (c *Call[T]) end(v Vote) {
	c.state = finished
	c.final = v
	c.round.open--
}

// take claims the call for a batch. It reports false for a call that is not
// wanted any more: dropped by its round, or out of time at now.
func (c *Call[T]) take(now time.Time) bool {
	r := c.round
	r.mu.Lock()
	if c.state != queued {
		r.mu.Unlock()
		return false
	}
	// What is kept goes once in any case: a node that stood still for longer than the
	// ttl may have begun to count just now.
	if late := r.kept() && c.sent && !now.Before(r.spec.KeepUntil) ||
		!r.kept() && r.stale(now); late {
		r.count(c, Failed, 0, ErrNotSent)
		c.end(Failed)
		r.unlock()
		return false
	}
	c.state = taken
	c.sent = true
	r.mu.Unlock()
	return true
}

// settle ends what a batch has left of the call. open tells that nobody knows what
// became of it, owed that it is queued again because it must be repeated, voted that
// its node granted or refused it.
func (c *Call[T]) settle(now time.Time) (open, owed, voted bool) {
	r := c.round
	r.mu.Lock()
	if c.state != taken {
		voted = c.final == Granted || c.final == Refused
		r.mu.Unlock()
		return false, false, voted
	}
	if r.kept() && now.Before(r.spec.KeepUntil) {
		if !c.counted && !c.lost {
			c.lost, c.err = true, ErrNoAnswer // the carrier forgot it
		}
		c.state = queued
		r.unlock()
		return true, true, false
	}
	r.count(c, Failed, 0, ErrNoAnswer) // in case the carrier forgot it
	c.end(Failed)
	r.unlock()
	return true, false, false
}

// unreachable counts the vote as failed before the lane knows the end: the
// node cannot be reached just now. A call that is neither sent nor kept is
// over, and unreachable reports that.
func (c *Call[T]) unreachable(err error) (over bool) {
	r := c.round
	r.mu.Lock()
	if c.state != finished {
		r.count(c, Failed, 0, err)
		if c.state == queued && !r.kept() {
			c.end(Failed)
		}
	}
	over = c.state == finished
	r.unlock()
	return over
}

// over reports that nothing more will happen to the call.
func (c *Call[T]) over() bool {
	c.round.mu.Lock()
	defer c.round.mu.Unlock()
	return c.state == finished
}
