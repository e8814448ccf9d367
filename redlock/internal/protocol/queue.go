package protocol

import "github.com/quorumlock/redlock/quorum"

// QueueReply is the decoded reply of queue.lua about a key and its queue.
type QueueReply struct {
	State   QueueState
	Changes int64 // milliseconds after which the state may change, or Unknown, or Missed
	Ahead   int64 // number of entries ahead of the sender's
	Tail    int64 // the highest ticket in the queue
	Fence   int64
	Holder  int64 // a digest of the value that has the key; 0: none, or not reported
}

// QueueState says whether a key is free, and for which client.
type QueueState int64

const (
	// StateHeld: another client has the key.
	StateHeld QueueState = iota
	// StateGranted: the sender has the key.
	StateGranted
	// StateFree: nobody has the key, and the sender is first in the queue.
	StateFree
	// StateFenced: as StateFree, but the token that the sender proposes is too low.
	StateFenced
	// StateAhead: nobody has the key, and another entry is ahead of the sender's.
	StateAhead
)

const (
	// Unknown is the Changes of a reply that does not know the time.
	Unknown = -1
	// moreDead is the Changes of a reply if more dead entries must be removed first.
	moreDead = -2
	// Missed is the Changes of a reply to an Enqueue that removed entries of waiters that were
	// woken and did not come.
	Missed = 1
)

func parseQueueReply(reply any) (q QueueReply, ok bool) {
	all, _ := reply.([]any)
	into := [...]*int64{(*int64)(&q.State), &q.Changes, &q.Ahead, &q.Tail, &q.Fence, &q.Holder}
	if len(all) != len(into) {
		return q, false
	}
	for i, one := range all {
		if *into[i], ok = one.(int64); !ok {
			return q, false
		}
	}
	return q, q.State >= StateHeld && q.State <= StateAhead && q.Ahead >= 0 && q.Fence >= 0
}

// decodeQueue decodes the reply of queue.lua.
func (o *Operation) decodeQueue(reply any, ineligible error) (r Reply, ok bool) {
	q, ok := parseQueueReply(reply)
	if !ok {
		return r, false
	}
	switch {
	case o.Kind == Probe:
		r = vote(ineligible)
	case o.Kind == Enqueue, o.Kind == Dequeue:
		r = vote(nil)
	case ineligible != nil:
		r = failed(ineligible)
	case q.State == StateGranted:
		r = Reply{Vote: quorum.Granted}
	case q.State == StateFenced && q.Fence >= MaxToken:
		r = failed(ErrTokenEnd) // a refusal would raise the other nodes' fences, too
	case q.Fence >= MaxToken:
		r = refused(0, ErrHeld) // as above
	case q.State == StateFenced:
		r = refused(q.Fence, ErrFenced)
	case q.State == StateHeld:
		r = refused(q.Fence, ErrHeld)
	default:
		r = refused(q.Fence, ErrQueued)
	}
	r.Queued, r.Queue, r.MoreDead = true, q, q.Changes == moreDead
	return r, true
}
