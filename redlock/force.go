package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// ForceRelease breaks the lock that an inspection has seen, whoever holds it: on every
// node it deletes the key if it still has a value that i has seen, and wakes the next in
// the queue. If the lock has changed hands since then, nothing of its new holder's is
// touched. A key that does not expire is deleted as well; one of another type is not.
// It returns the addresses of the nodes on which it has deleted a key.
//
// The holder is not asked. One that still lives finds out at its next renewal, a third of
// its ttl later or, without KeepAlive, never: until then two may work at a time. So make
// sure first that it is dead. Only fencing tokens stop what it still writes; the fence is
// left alone.
//
// It takes one round trip and never longer than Config.NodeTimeout; if ctx ends, it no
// longer waits for the nodes. Those that do not answer are asked again in the background
// until the ttl that i has seen is over, or Close; for a key that does not expire they are
// not, as whoever wrote that may use its value again.
//
// The error is nil if a majority answered: none of these has a value any more that i has
// seen. Otherwise it is a *QuorumError with ErrNoQuorum, which names those that did not
// and matches ctx's cause if ctx has ended: they may have their keys until they are
// reached. ErrClosed after Close, ctx's cause if ctx had ended before; with these, and
// with an error that names an argument, nobody was asked.
func (r *Redlock) ForceRelease(ctx context.Context, i *Inspection) (deleted []string, err error) {
	if i == nil {
		return nil, errors.New("redlock: inspection is nil")
	}
	if err := r.checkInspect(ctx, i.Key); err != nil {
		return nil, err
	}
	if err := r.enter(); err != nil {
		return nil, opError(kindForce.String(), i.Key, err)
	}
	defer r.attempts.Done()
	if ctx.Err() != nil {
		return nil, opError(kindForce.String(), i.Key, context.Cause(ctx))
	}

	// Values are asked for on all nodes: where one had none a moment ago, or could not
	// tell, the lock may be as well. Who has it is the same on each.
	name := r.cfg.KeyPrefix + i.Key
	var rounds []*quorum.Round[command]
	for _, value := range i.values() {
		rounds = append(rounds, r.start(quorum.Spec[command]{
			Op:        command{kind: kindForce, resource: i.Key, key: name, value: value, queue: flagOf(name)},
			All:       true,
			KeepUntil: r.cfg.Clock.Now().Add(max(i.remaining(value), r.cfg.NodeTimeout)),
		}))
	}
	on := make([]bool, len(r.nodes))
	for _, round := range rounds {
		round.Wait(ctx)
		if round.Replied(woke) {
			r.told.note(i.Key)
		}
		for _, b := range round.Ballots() {
			on[b.Node] = on[b.Node] || b.Final == quorum.Granted && b.Reply > 0
		}
		if err == nil && round.Tally().Outcome() != quorum.Won {
			var cause error
			if ctx.Err() != nil {
				cause = context.Cause(ctx)
			}
			err = r.quorumError(round, ErrNoQuorum, cause)
		}
	}
	for node, yes := range on {
		if yes {
			deleted = append(deleted, r.nodes[node].addr)
		}
	}
	return deleted, err
}

// remaining is how long a value lives on the nodes that have it; 0 if it does not expire.
func (i *Inspection) remaining(value string) (longest time.Duration) {
	for _, n := range i.Nodes {
		if n.value != nil && *n.value == value {
			longest = max(longest, n.TTL)
		}
	}
	return longest
}
