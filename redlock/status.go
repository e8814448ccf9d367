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
// cause. Healthy returns ErrDuplicateNode if one server is listed as two nodes, and ErrClosed after
// Close.
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
			Value: protocol.HealthKey, TTL: int64(1), Context: ctx,
		},
		KeepUntil: r.cfg.Clock.Now().Add(r.cfg.NodeTimeout), // ask the nodes that the decision did not need, too
		Heard:     func(*quorum.Round[protocol.Operation]) { close(heard) },
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

// Stats are counters and gauges of a Redlock, as database/sql has them for a pool. The counters
// begin with New and never go back. Nested locks (Config.Reentrant) are not counted.
type Stats struct {
	Held    int64 // locks that are held now
	Waiting int64 // callers of Acquire that wait now, because the key was taken or there was no quorum

	// How acquisitions ended: calls of Acquire, TryAcquire, Do and Resume, except those that
	// failed because of an argument, because their context had ended before, or with ErrReentrant.
	Acquired int64 // there was a lock
	Refused  int64 // ErrHeld, also if the caller's context ended while another client had the key
	NoQuorum int64 // ErrNoQuorum
	Failed   int64 // any other error

	WaitCount    int64         // acquisitions that had to wait, and have ended
	WaitDuration time.Duration // the sum of the times for which they waited

	// How locks ended. Their sum and Held are Acquired.
	Released    int64 // by Release or ReleaseAfter, by Detach, or by Close
	LostNotHeld int64 // a majority of the nodes did not have the lock's value any more
	LostExpired int64 // the validity ended before the lock was released

	Renewed        int64 // renewals by KeepAlive or Do that a majority granted in time
	RenewalsFailed int64 // other renewals, most of which were tried again

	Nodes []NodeStats // in the order of New
}

// NodeStats counts how one node has voted, in rounds of all operations. A vote counts a moment after
// the call that it was for may have returned.
type NodeStats struct {
	Addr string // the node's address, as in errors

	Granted int64
	Refused int64 // the node answered that it would not do it, mostly because another client has the key
	Failed  int64 // the node did not answer in time, or its vote does not count

	// Latency is the sum of the times from before the first byte of a round was sent until the node's
	// vote was read or given up.
	Latency time.Duration

	// QuarantinedUntil is until when the node's votes do not count because it may have forgotten
	// locks (Config.RestartGuard). It is zero if the node is not in quarantine. Of the servers behind a
	// Cluster it is the latest.
	QuarantinedUntil time.Time
}

// Stats returns the counters and gauges. It asks no node. Numbers that belong together can be some
// operations apart, as they are read one after the other.
func (r *Redlock) Stats() Stats {
	if r == nil || r.closing == nil {
		return Stats{}
	}
	c := &r.counters
	s := Stats{
		Held: c.held.Load(), Waiting: c.waiting.Load(),
		Acquired: c.acquired.Load(), Refused: c.refused.Load(), NoQuorum: c.noQuorum.Load(), Failed: c.failed.Load(),
		WaitCount: c.waitCount.Load(), WaitDuration: time.Duration(c.waitDuration.Load()),
		Released: c.released.Load(), LostNotHeld: c.lostNotHeld.Load(), LostExpired: c.lostExpired.Load(),
		Renewed: c.renewed.Load(), RenewalsFailed: c.renewalsFailed.Load(),
		Nodes: make([]NodeStats, len(r.nodes)),
	}
	now := r.cfg.Clock.Now()
	for i, n := range r.nodes {
		v := r.group.Votes(i)
		s.Nodes[i] = NodeStats{Addr: n.Addr, Granted: v.Granted, Refused: v.Refused, Failed: v.Failed, Latency: v.Latency}
		for _, server := range r.guard.Status(i, now) {
			if until := server.Quarantine; now.Before(until) && until.After(s.Nodes[i].QuarantinedUntil) {
				s.Nodes[i].QuarantinedUntil = until
			}
		}
	}
	return s
}
