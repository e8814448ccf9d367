package protocol

import (
	"errors"

	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// Reply is a decoded reply of a node.
type Reply struct {
	Vote   quorum.Vote // Granted, Refused or Failed
	Number int64       // of a refusal the fence; of a grant how the key was released, see Woke
	Err    error       // why the vote is not Granted

	MoreDead bool       // the queue has more dead entries than one script removes
	Queued   bool       // the reply is queue.lua's, and Queue is set
	Queue    QueueReply // the reply of queue.lua
	Seen     *Seen      // the reply of inspect.lua; otherwise nil
}

// Woke is the Number of a release that woke a waiter.
const Woke = 2

// more is added to a release's reply if the key is free and more dead entries remain.
const more = 4

// A refusal is the reason why one node refused. The operation may end for another reason, so a
// QuorumError does not match the reasons of refusals.
type refusal struct {
	text   string
	reason error
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.reason }

// The reasons why a node did not grant an operation.
var (
	ErrHeld     error = &refusal{"has somebody else's value", errs.Held}
	ErrQueued   error = &refusal{"has others waiting for it", errs.Held}
	ErrFenced   error = &refusal{"has seen a token as high as the one proposed", errs.Held}
	ErrNotHeld  error = &refusal{"does not have our value", errs.NotHeld}
	ErrTokenEnd       = errors.New("has a fence that no token is above")
)

// DecodeSet decodes the reply to SET. It reports false for a reply that is no answer.
// ineligible is the reason why the node's vote does not count; nil if it counts.
func DecodeSet(reply string, ineligible error) (r Reply, ok bool) {
	if reply != "OK" {
		return r, false
	}
	return vote(ineligible), true
}

// DecodeNil decodes the nil that SET NX replies if the key exists, and SET XX if it does not. It
// reports false for an operation to which nil is no answer.
func (o *Operation) DecodeNil(ineligible error) (r Reply, ok bool) {
	switch {
	case o.Kind == Health:
		return vote(ineligible), true
	case !o.Kind.Takes():
		return r, false
	case ineligible != nil:
		return failed(ineligible), true
	}
	return refused(0, ErrHeld), true
}

// Decode decodes a script's reply to an operation. It reports false for a reply that is no
// answer.
//
// ineligible is the reason why the node's vote does not count; nil if it counts. If it does
// not, a grant to take, to extend or to retain the key fails. A reply that the node has lost or deleted a
// key is valid all the same.
func (o *Operation) Decode(s *script.Script, reply any, ineligible error) (r Reply, ok bool) {
	switch s {
	case &script.Queue:
		return o.decodeQueue(reply, ineligible)
	case &script.Inspect:
		return decodeInspection(reply, ineligible)
	}
	number, ok := reply.(int64)
	if !ok {
		return r, false
	}
	dead := false
	if !o.Kind.Takes() && o.Kind != Extend && number&^(more-1) == more {
		number, dead = number-more, true
	}
	switch {
	case ineligible != nil && (o.Kind.Takes() || o.Kind == Probe || o.Kind.keeps() && number == 1):
		r = failed(ineligible)
	case o.Kind.Takes():
		r = decodeProposal(number)
	case o.Kind.deletesForCertain() && number >= 0 && number <= Woke,
		o.Kind == Release && number == Woke,
		(o.Kind == Release || o.Kind.keeps()) && number == 1:
		r = Reply{Vote: quorum.Granted, Number: number}
	case (o.Kind == Release || o.Kind.keeps()) && number <= 0:
		r = refused(number, ErrNotHeld)
	default:
		return r, false
	}
	r.MoreDead = dead
	return r, true
}

// decodeProposal decodes the reply of propose.lua.
func decodeProposal(number int64) Reply {
	switch {
	case number == 1:
		return Reply{Vote: quorum.Granted}
	case number >= MaxToken:
		return failed(ErrTokenEnd) // a refusal would raise the other nodes' fences, too
	case number <= -MaxToken:
		return refused(0, ErrHeld)
	case number <= 0:
		return refused(-number, ErrHeld)
	}
	return refused(number, ErrFenced)
}

func vote(ineligible error) Reply {
	if ineligible != nil {
		return failed(ineligible)
	}
	return Reply{Vote: quorum.Granted}
}

func failed(err error) Reply { return Reply{Vote: quorum.Failed, Err: err} }
func refused(number int64, err error) Reply {
	return Reply{Vote: quorum.Refused, Number: number, Err: err}
}
