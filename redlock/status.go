package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// NodeStatus is what is known of one of the N masters, for operators.
type NodeStatus struct {
	Addr string // the node's address, as in errors
	// Servers are the servers that were seen behind the node: one, or none yet. Behind a Cluster
	// there is one for each shard that was in use. A server that left the Cluster stays in the list
	// for Config.RestartGuard or longer, until the Redlock connects to a new one.
	Servers []ServerStatus
}

// ServerStatus is what a server reported about itself when it was last asked, and whether its votes
// count. A server is asked on each new connection. Without Config.RestartGuard it is asked for
// nothing but its RunID and Started.
type ServerStatus struct {
	Addr    string
	RunID   string    // of the server's process
	Role    string    // "master" or "slave"
	Started time.Time // approximately; by the Redlock's clock
	Heard   time.Time // when it reported this; by the Redlock's clock

	// Quarantine is until when its votes do not count because it may have forgotten locks. It is
	// zero or past if the server is not in quarantine.
	Quarantine time.Time
	// Err is why its votes would not count now; nil if they would. It matches ErrDuplicateNode for
	// a server that is another node too.
	Err error
}

// Nodes returns, in the order of New, which servers are behind each node and whether their votes
// count. It asks no node. What it returns was learned by the last operation that made a connection
// or, with Config.RestartGuard, by the check that operations make once a second.
func (r *Redlock) Nodes() []NodeStatus {
	if r == nil || r.closing == nil {
		return nil
	}
	now := r.cfg.Clock.Now()
	all := make([]NodeStatus, len(r.nodes))
	for i, n := range r.nodes {
		all[i].Addr = n.Addr
		for _, s := range r.guard.Status(i, now) {
			all[i].Servers = append(all[i].Servers, ServerStatus(s))
		}
	}
	return all
}

// Healthy returns nil if a majority of the nodes would vote for a lock now. It is meant for a
// readiness probe: a program that is not ready because of it cannot lock anything. Do not restart a
// program because of it, as locks that it holds may still be valid.
//
// Healthy takes one round trip, in which it takes no lock and changes nothing. It asks for the write
// of a key that does not exist (redlock:health after Config.KeyPrefix, SET XX), so that it also finds
// masters that are out of memory, that cannot save, or that became replicas. Behind a Cluster it asks
// the shard with that key. If there is no majority, it waits for the other nodes' answers, but never
// longer than Config.NodeTimeout or until ctx ends.
//
// The error is a *QuorumError with the Op "health" and with the cause of each node that would not vote,
// a quarantine included. It matches ErrNoQuorum or, if ctx ended before the result was certain, ctx's
// cause. ErrDuplicateNode if one server is listed as two nodes; ErrClosed after Close.
func (r *Redlock) Healthy(ctx context.Context) error {
	if r == nil || r.closing == nil {
		return errNotMade
	}
	if ctx == nil {
		return errNilContext
	}
	if err := r.enter(); err != nil {
		return errs.Op(protocol.Health.String(), protocol.HealthKey, err)
	}
	defer r.operations.Done()

	heard := make(chan struct{})
	round := r.ask(ctx, quorum.Spec[protocol.Operation]{
		Op: protocol.Operation{
			Kind: protocol.Health, Key: protocol.HealthKey, NodeKey: r.cfg.KeyPrefix + protocol.HealthKey,
			Value: "-", TTL: int64(1), Context: ctx,
		},
		Heard: func(*quorum.Round[protocol.Operation]) { close(heard) },
	}, r.cfg.NodeTimeout)
	if err := r.guard.Duplicate(); err != nil {
		return errs.Op(protocol.Health.String(), protocol.HealthKey, err)
	}
	if round.Tally().Outcome() == quorum.Won {
		return nil
	}
	timer := r.cfg.Clock.NewTimer(r.cfg.NodeTimeout - r.cfg.Clock.Now().Sub(round.Start()))
	defer timer.Stop()
	select {
	case <-heard:
	case <-timer.C():
	case <-ctx.Done():
	}
	failed := r.noQuorum(ctx, round)
	for _, b := range round.Ballots() {
		if b.Final == quorum.Granted { // after the decision
			failed.Nodes = slices.DeleteFunc(failed.Nodes, func(n NodeError) bool { return n.Index == b.Node })
		}
	}
	return failed
}
