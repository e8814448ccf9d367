package protocol

import "github.com/quorumlock/redlock/quorum"

// QueueReply is the decoded reply of queue.lua about a key and its queue.
type QueueReply struct {
	State QueueState
	// Changes is the number of milliseconds after which the State may change, or a code. The codes
	// are Unknown and moreDead, which are negative, and Missed. Missed is also a valid time, so it
	// is a code only if the State is not StateHeld; see Missed.
	Changes int64
	Ahead   int64 // number of waiters ahead of the sender
	Tail    int64 // the highest ticket in the queue; 0: none
	Fence   int64 // the highest token that the fence has seen; 0: none, no fencing, or not reported
	Holder  int64 // a digest of the value that has the key; 0: none, or not reported
}

// QueueState says whether a key is free, and for which client.
type QueueState int64

const (
	// StateHeld: another client has the key.
	StateHeld QueueState = iota
	// StateGranted: the sender has the key.
	StateGranted
	// StateFree: nobody has the key, and the sender is the first waiter.
	StateFree
	// StateFenced: as StateFree, but the token that the sender proposes is too low.
	StateFenced
	// StateAhead: nobody has the key, and another waiter is ahead of the sender.
	StateAhead
)

// Values of QueueReply.Changes that are codes.
const (
	// Unknown: the key does not expire, so nothing tells when the state may change.
	Unknown = -1
	// moreDead: the script has removed as many dead entries as one script may, and there are more.
	moreDead = -2
	// Missed, unless the State is StateHeld: an Enqueue has removed waiters that were woken and
	// missed their deadline. The state may change at once. In these states a time of 1 ms is
	// replied as 2. With StateHeld a 1 is a time: the key expires in 1 ms.
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
