package quorum

import (
	"sync/atomic"
	"time"
)

// Votes counts the votes of one node, in rounds of all kinds. It does not count calls that were
// never sent because the group was closed, or because their round was decided before. In the latter
// case it counts a failure if the node hung, as it would not have voted.
type Votes struct {
	Granted, Refused, Failed int64

	// Latency is the sum, over all votes, of the time from the round's start until the batch that
	// carried the call was over or, without an answer, until the call was given up.
	Latency time.Duration
}

// Voted is one node's vote, as [Group.OnVotes] passes it on.
type Voted[T any] struct {
	Round   *Round[T]
	Node    int
	Vote    Vote // Granted, Refused or Failed
	Err     error
	Latency time.Duration // as in Votes
}

// counts is what Votes returns. Mostly one lane's goroutine writes it.
type counts struct {
	granted, refused, failed, latency atomic.Int64

	_ [32]byte // two nodes' counts share no cache line
}

// Votes returns how a node has voted so far. A vote is counted a moment after its round may have
// been decided by it.
func (g *Group[T]) Votes(node int) Votes {
	c := &g.counts[node]
	return Votes{
		Granted: c.granted.Load(), Refused: c.refused.Load(), Failed: c.failed.Load(),
		Latency: time.Duration(c.latency.Load()),
	}
}

// OnVotes makes the group call f with the votes that Votes counts, often with those of a whole batch.
// It must be called before the first round. f may be called with a round's mutex held: it must
// neither block nor call methods of the round other than Op, Start and Within, nor keep the slice.
func (g *Group[T]) OnVotes(f func([]Voted[T])) { g.onVotes = f }

// record counts the node's vote, the first time that it is called. It adds the vote to batch, for
// OnVotes' function, or calls that at once if batch is nil. mu is held.
//
// The lanes record a batch when it is over and not each answer when it comes: one reading of the
// clock serves for all of them, and one call of the function.
func (c *Call[T]) record(v Vote, err error, now time.Time, batch *[]Voted[T]) {
	if c.recorded || err == ErrNotSent || err == ErrClosed {
		return
	}
	c.recorded = true
	r := c.round
	n := &r.group.counts[c.node]
	switch v {
	case Granted:
		n.granted.Add(1)
	case Refused:
		n.refused.Add(1)
	default:
		v = Failed
		n.failed.Add(1)
	}
	latency := now.Sub(r.start)
	n.latency.Add(int64(latency))
	if !r.spec.Timed {
		c.latency = latency
	}
	if r.group.onVotes == nil {
		return
	}
	voted := Voted[T]{Round: r, Node: c.node, Vote: v, Err: err, Latency: latency}
	if batch != nil {
		*batch = append(*batch, voted)
	} else {
		r.group.onVotes([]Voted[T]{voted})
	}
}

// recordAnswer records how a call ended that its batch has finished; mu is held.
func (c *Call[T]) recordAnswer(now time.Time, batch *[]Voted[T]) {
	v, err := c.final, c.err
	switch {
	case err == ErrVotedTwice:
		v = Failed
	case v == Granted:
		err = nil // the caller may have left before the answer
	}
	c.record(v, err, now, batch)
}
