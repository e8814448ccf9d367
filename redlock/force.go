package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// ForceRelease breaks the lock that an inspection has found, without its holder's consent. On every
// node it deletes the key if it still has a value that i has found, and wakes the next waiter in
// the queue. If the lock has changed hands since then, the new holder's keys stay. ForceRelease
// returns the addresses of the nodes on which it has deleted a key.
//
// A key that does not look like a lock of this library stays: a key of another type, one whose
// value is no UUID, and one that does not expire when the node is asked. If i has found only such
// keys, the error matches ErrForeign and no node was asked. ForceReleaseForeign deletes the last
// two kinds as well.
//
// If the holder still lives, and KeepAlive or Do has renewed its lock at least once, the nodes
// notify it: its lock's context is done with ErrNotHeld two round trips after the call. If that
// message is lost, the user has no right to send it (docs/operations.md), or the lock was not
// renewed yet, the holder notices at its next renewal, a third of its ttl later. Without KeepAlive
// it notices when it extends or releases the lock. Until then two holders may work at the same
// time, so first make sure that the old one is dead. Only fencing tokens stop its writes;
// ForceRelease does not touch the fence.
//
// ForceRelease takes one round trip, and never longer than Config.NodeTimeout. If ctx ends, it no
// longer waits for the nodes. Nodes that do not answer are asked again in the background until the
// ttl that i has found is over, or until Close.
//
// The error is nil if a majority answered: none of these nodes has a lock any more that i has
// found. Otherwise it is a *QuorumError, which names the nodes that did not answer. They may have
// their keys until they are reached. It matches ErrNoQuorum if too many nodes failed, and ctx's
// cause if ctx has ended; if ctx ended before either was certain, it matches ctx's cause alone.
// After Close the error is ErrClosed. If ctx had ended before the call, it is ctx's cause. With
// these two, and with an error that names an argument, no node was asked.
func (r *Redlock) ForceRelease(ctx context.Context, i *Inspection) (deleted []string, err error) {
	return r.forceRelease(ctx, i, false)
}

// ForceReleaseForeign is like ForceRelease, but also deletes strings that do not look like locks:
// those that do not expire, and those whose value is no UUID, such as locks of other libraries.
// They may as well be data that happen to have the key's name. A key of another type stays; if i
// has found nothing else, the error matches ErrForeign.
//
// If a key does not expire, nodes that do not answer are asked again only within
// Config.NodeTimeout, because the program that wrote the key may use its value again.
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
	defer r.operations.Done()
	if ctx.Err() != nil {
		return nil, errs.Op(protocol.ForceRelease.String(), i.Key, context.Cause(ctx))
	}

	values := i.values(foreign)
	if err := i.noLock(); err != nil && len(values) == 0 {
		return nil, errs.Op(protocol.ForceRelease.String(), i.Key, err)
	}

	// Every value is deleted on all nodes: a node that had none a moment ago, or could not
	// report, may have the lock as well. A value belongs to the same holder on each node.
	nodeKey := r.cfg.KeyPrefix + i.Key
	var rounds []*quorum.Round[protocol.Operation]
	for _, value := range values {
		rounds = append(rounds, r.start(quorum.Spec[protocol.Operation]{
			Op:        protocol.Operation{Kind: protocol.ForceRelease, Observer: observer{r}, Key: i.Key, NodeKey: nodeKey, Value: value, Queue: protocol.FlagOf(nodeKey), Foreign: foreign},
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
			err = r.noQuorum(ctx, round)
		}
	}
	for node, yes := range on {
		if yes {
			deleted = append(deleted, r.nodes[node].Addr)
		}
	}
	return deleted, err
}

// remaining returns how long a value lives on the nodes that have it; 0 if it does not expire.
func (i *Inspection) remaining(value string) (longest time.Duration) {
	for _, n := range i.Nodes {
		if n.value != nil && *n.value == value {
			longest = max(longest, n.TTL)
		}
	}
	return longest
}
