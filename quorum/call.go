package quorum

import (
	"time"
	"unique"
)

// Call is one round's operation on one node. A [Transport] answers each call of a batch with
// exactly one of Grant, Refuse, Fail, Lose and Unsent. An answer after the round's decision
// does not change it.
type Call[T any] struct {
	round *Round[T]
	node  int

	// Guarded by round.mu.
	state    callState
	sent     bool // the node may have executed it
	counted  bool // vote is in the round's tally
	recorded bool // the group has counted the node's vote; see record
	lost     bool // the call is kept and was sent, but its answer was lost; err says why
	vote     Vote // the vote that the round counted
	final    Vote // how the call ended, perhaps after the decision
	reply    int64
	err      error
	latency  time.Duration

	// Written by the lane's goroutine before it answers. Others read voter only after they
	// have seen Granted in vote.
	voter Voter
}

// Voter identifies the server behind a node. Nodes with the same Voter have one vote between
// them. The zero Voter is unknown, and equals no other.
type Voter = unique.Handle[string]

// By sets the voter of the answers that follow. A round counts one grant of each voter,
// whichever node it comes from; a second fails with [ErrVotedTwice].
func (c *Call[T]) By(voter Voter) {
	if c.voter != voter { // do not write again for a call that is answered twice
		c.voter = voter
	}
}

type callState uint8

const (
	queued   callState = iota // no lane has sent it
	taken                     // in a batch that is under way
	finished                  // nothing more will happen to it
)

// Op returns the operation to do. It must not be changed: all nodes of the round share it.
func (c *Call[T]) Op() *T { return &c.round.spec.Op }

// Node returns the index of the call's node in the group.
func (c *Call[T]) Node() int { return c.node }

// Grant reports that the node did it: the reply is positive evidence.
func (c *Call[T]) Grant(reply int64) { c.finish(Granted, reply, nil) }

// Refuse reports that the node answered that it would not do it.
func (c *Call[T]) Refuse(reply int64, err error) { c.finish(Refused, reply, err) }

// Fail reports that the node did not do it, and never will.
func (c *Call[T]) Fail(err error) { c.finish(Failed, 0, err) }

// Lose reports an indeterminate result: the node may have done it, or may yet do it. The vote
// has failed, unless the call is kept: then the lane sends it again, and the node may still
// vote within the round's time.
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

// Unsent reports that the node did not do it, because it was not reached or did not accept it.
// The vote has failed, but a call that is kept is sent again.
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
		if c.state == queued { // its lane cannot take it
			c.record(v, err, r.group.clock.Now(), nil)
		}
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

// take claims the call for a batch. It returns false if the round dropped the call, or if it
// is too late at now.
func (c *Call[T]) take(now time.Time) bool {
	r := c.round
	r.mu.Lock()
	if c.state != queued {
		r.mu.Unlock()
		return false
	}
	// A kept call is sent at least once, however late: a node that stood still for longer than
	// the ttl may have begun to count the ttl only now.
	if late := r.kept() && c.sent && !now.Before(r.spec.KeepUntil) ||
		!r.kept() && r.stale(now); late {
		r.count(c, Failed, 0, ErrNotSent)
		c.record(Failed, ErrNoAnswer, now, nil) // its node was busy with earlier calls for that long
		c.end(Failed)
		r.unlock()
		return false
	}
	c.state = taken
	c.sent = true
	r.mu.Unlock()
	return true
}

// settle finishes a call that its batch left unanswered, or queues it again if it is kept.
// indeterminate reports that the batch left it unanswered, undelivered that it was queued again,
// and voted that its node granted or refused it. batch is for record.
func (c *Call[T]) settle(now time.Time, batch *[]Voted[T]) (indeterminate, undelivered, voted bool) {
	r := c.round
	r.mu.Lock()
	if c.state != taken {
		voted = c.final == Granted || c.final == Refused
		c.recordAnswer(now, batch)
		r.mu.Unlock()
		return false, false, voted
	}
	if r.kept() && now.Before(r.spec.KeepUntil) {
		if !c.counted && !c.lost {
			c.lost, c.err = true, ErrNoAnswer // the Transport left it without an answer
		}
		c.state = queued
		if c.counted || now.Sub(r.start) >= r.spec.Within { // otherwise a repetition may still count
			c.record(Failed, c.err, now, batch)
		}
		r.unlock()
		return true, true, false
	}
	r.count(c, Failed, 0, ErrNoAnswer) // no effect unless the Transport left it without an answer
	c.record(Failed, c.err, now, batch)
	c.end(Failed)
	r.unlock()
	return true, false, false
}

// unreachable counts the vote as failed, without waiting for the batch, because the node
// cannot be reached now. It finishes a call that is neither sent nor kept, and reports whether
// the call is finished.
func (c *Call[T]) unreachable(err error) (over bool) {
	r := c.round
	r.mu.Lock()
	if c.state != finished {
		r.count(c, Failed, 0, err)
		c.record(Failed, err, r.group.clock.Now(), nil)
		if c.state == queued && !r.kept() {
			c.end(Failed)
		}
	}
	over = c.state == finished
	r.unlock()
	return over
}

// over reports whether the call is finished.
func (c *Call[T]) over() bool {
	c.round.mu.Lock()
	defer c.round.mu.Unlock()
	return c.state == finished
}
