package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// ForceRelease breaks the lock that an inspection has seen, whoever holds it: on every
// node it deletes the key if it still has a value that i has seen, and wakes the next in
// the queue. If the lock has changed hands since then, nothing of its new holder's is
// touched. It returns the addresses of the nodes on which it has deleted a key.
//
// A key that does not look like a lock of this library stays: one of another type, one
// whose value is no UUID, and one that does not expire when the node is asked. If i has
// seen nothing else, the error matches ErrForeign and nobody was asked.
// ForceReleaseForeign deletes such keys as well.
//
// The holder is not asked. One that still lives, and whose lock KeepAlive or Do has renewed
// at least once, is told: its lock's context is done with ErrNotHeld two round trips after
// the call. Where that message is lost, the user has no right to send it
// (docs/operations.md), or the lock was not renewed yet, the holder finds out at its next
// renewal, a third of its ttl later, or without KeepAlive when it extends or releases the
// lock. Until it knows, two may work at a time, so make sure first that it is dead. Only
// fencing tokens stop what it still writes; the fence is left alone.
//
// It takes one round trip and never longer than Config.NodeTimeout; if ctx ends, it no
// longer waits for the nodes. Those that do not answer are asked again in the background
// until the ttl that i has seen is over, or Close.
//
// The error is nil if a majority answered: none of these has a lock any more that i has
// seen. Otherwise it is a *QuorumError, which names the nodes that did not: they may have
// their keys until they are reached. It matches ErrNoQuorum if too many nodes failed, and
// ctx's cause if ctx has ended; if ctx ended before either was certain, its cause alone.
// ErrClosed after Close, ctx's cause if ctx had ended before; with these, and with an
// error that names an argument, nobody was asked.
func (r *Redlock) ForceRelease(ctx context.Context, i *Inspection) (deleted []string, err error) {
	return r.forceRelease(ctx, i, false)
}

// ForceReleaseForeign is ForceRelease that also deletes strings which do not look like
// locks: those that do not expire, or have another value than a UUID, such as locks of other
// libraries. They may as well be data that happen to have the key's name. A key of another
// type stays; if i has seen nothing else, the error matches ErrForeign.
//
// Nodes that do not answer are not asked again for a key that does not expire, as a program
// that wrote it may use its value again.
func (r *Redlock) ForceReleaseForeign(ctx context.Context, i *Inspection) (deleted []string, err error) {
	return r.forceRelease(ctx, i, true)
}

func (r *Redlock) forceRelease(ctx context.Context, i *Inspection, foreign bool) (deleted []string, err error) {
	if i == nil {
		return nil, errors.New("redlock: inspection is nil")
	}
	if err := r.checkInspect(ctx, i.Key); err != nil {
		return nil, err
	}
	if err := r.enter(); err != nil {
		return nil, errs.Op(protocol.ForceRelease.String(), i.Key, err)
	}
	defer r.attempts.Done()
	if ctx.Err() != nil {
		return nil, errs.Op(protocol.ForceRelease.String(), i.Key, context.Cause(ctx))
	}

	values := i.values(foreign)
	if err := i.noLock(); err != nil && len(values) == 0 {
		return nil, errs.Op(protocol.ForceRelease.String(), i.Key, err)
	}

	// Values are asked for on all nodes: where one had none a moment ago, or could not
	// tell, the lock may be as well. Who has it is the same on each.
	name := r.cfg.KeyPrefix + i.Key
	var rounds []*quorum.Round[protocol.Operation]
	for _, value := range values {
		rounds = append(rounds, r.start(quorum.Spec[protocol.Operation]{
			Op:        protocol.Operation{Kind: protocol.ForceRelease, Observer: observer{r}, Key: i.Key, NodeKey: name, Value: value, Queue: protocol.FlagOf(name), Foreign: foreign},
			All:       true,
			KeepUntil: r.cfg.Clock.Now().Add(max(i.remaining(value), r.cfg.NodeTimeout)),
		}))
	}
	on := make([]bool, len(r.nodes))
	for _, round := range rounds {
		round.Wait(ctx)
		if round.Replied(protocol.Woke) {
			r.handoffs.Note(i.Key, r.cfg.Clock.Now())
		}
		for _, b := range round.Ballots() {
			on[b.Node] = on[b.Node] || b.Final == quorum.Granted && b.Reply > 0
		}
		if err == nil && round.Tally().Outcome() != quorum.Won {
			err = r.unanswered(ctx, round)
		}
	}
	for node, yes := range on {
		if yes {
			deleted = append(deleted, r.nodes[node].Addr)
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
