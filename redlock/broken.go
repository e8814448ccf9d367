package redlock

import (
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// breakReports records which nodes have reported that ForceRelease deleted the key of a lock. The
// lock's mu guards it.
type breakReports struct {
	digest  protocol.Digest
	deleted []bool    // nodes that have deleted the key since the last renewal began
	sum     int       // the number of these nodes
	next    time.Time // before this, no message causes a renewal
}

// watch subscribes to the nodes' reports that ForceRelease has broken the lock. Each renewal calls
// it, from the first on, so a lock that is held for less than a third of its ttl costs nothing.
// With a Cluster each renewal looks for the shard again, as the key's slot may have moved. The
// caller holds mu.
func (l *Lock) watch() {
	first := l.reports == nil
	if first {
		l.reports = &breakReports{digest: protocol.DigestOf(l.value), deleted: make([]bool, len(l.r.nodes))}
	}
	if first || l.r.subscriber.Clustered() {
		l.r.subscriber.WatchLock(l.reports.digest, l.nodeKey.(string), l.deletedByForce)
	}
}

// unwatch ends what watch began. The caller holds mu.
func (l *Lock) unwatch() {
	if l.reports != nil {
		l.r.subscriber.UnwatchLock(l.reports.digest)
	}
}

// deletedByForce records a node's report that it has deleted the lock's key.
func (l *Lock) deletedByForce(node int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reports := l.reports; l.cause == nil && !reports.deleted[node] {
		reports.deleted[node] = true
		reports.sum++
		l.renewSooner()
	}
}

// renewing records that a renewal is about to be sent. The renewal will find what was reported
// before it. Renewals because of messages are at least minRetry apart, so that a flood of messages
// does not cause a flood of renewals. The caller holds mu.
func (l *Lock) renewing() {
	if reports := l.reports; reports.sum > 0 {
		clear(reports.deleted)
		reports.sum, reports.next = 0, l.r.cfg.Clock.Now().Add(minRetry)
	}
}

// renewSooner moves the next renewal forward if nodes have deleted the lock's key. Once so many have
// that no majority can be left, the renewal is due now, and finds the lock lost. An earlier renewal
// could overtake ForceRelease on its way to the other nodes, win, and put the key back where it was
// deleted. But a message can be lost. So after the time that the other nodes have had to answer
// ForceRelease, one message is enough. If a renewal is under way, another one follows it. The
// caller holds mu.
func (l *Lock) renewSooner() {
	reports := l.reports
	if reports == nil || reports.sum == 0 {
		return
	}
	nodes := len(l.r.nodes)
	due := l.r.cfg.Clock.Now()
	if reports.sum <= nodes-quorum.Size(nodes) {
		due = due.Add(min(l.r.cfg.NodeTimeout, defaultNodeTimeout))
	}
	if due.Before(reports.next) {
		due = reports.next
	}
	l.r.scheduler.RenewBy(l, due)
}
