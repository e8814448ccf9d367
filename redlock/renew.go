package redlock

import (
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// renewals is how many renewals there are per ttl: the first and the second can fail, and the lock
// still lives. Redisson's watchdog uses the same third.
const renewals = 3

// minRetry is the shortest pause after a renewal that found no quorum, unless a third of the ttl is
// shorter.
const minRetry = 50 * time.Millisecond

// KeepAlive renews the lock in the background, every third of the ttl last asked for, until the
// lock is released or lost. It returns at once. To call it again, or on a lock that has ended, does
// nothing. A renewal may take longer than Config.NodeTimeout: an answer counts while the lock is
// valid. A renewal that finds no quorum is tried again while validity lasts. A renewal that finds
// the lock lost ends it, and its Context with it.
//
// So if the keys vanish from a majority of the nodes, the holder knows after a third of the ttl at
// the most. That interval is not an option, but a shorter ttl shortens it. If ForceRelease breaks
// the lock, the holder knows two round trips later. For that the Redlock has one more connection to
// each node, or to each shard of a Cluster that has such a key. It keeps this connection from the
// first renewal of a lock until ten seconds after the last renewed lock has ended. Callers that
// wait in Acquire share it.
//
// Renewals go on after the context that the lock was acquired with has ended: a handler that
// returns without Release leaves a lock that is renewed until the process ends. Defer the Release
// right after the acquisition; the example of Lock.Context has the pattern.
func (l *Lock) KeepAlive() {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	if l.keepAlive || l.cause != nil {
		return
	}
	others, _ := outer.renewalTTLs()
	l.keepAlive = true
	// The ttl began when the nodes were last asked for it, not now, unless they were asked for a
	// longer one.
	began := outer.until.Add(l.r.cfg.Drift.Of(l.ttl) - l.ttl)
	if now := l.r.cfg.Clock.Now(); began.After(now) {
		began = now
	}
	due := began.Add(l.ttl / renewals)
	switch {
	case others != 0:
		l.r.scheduler.RenewBy(outer, due)
	case !outer.inRenewal:
		l.r.scheduler.RenewAt(outer, due)
	}
}

// renew starts a renewal, and never waits for a node. The scheduler calls it when the renewal is
// due. The next one is scheduled when this one is decided, at the latest when validity is over. So
// there is never more than one under way: masters that are slow are not asked again for what they
// are still doing.
func (l *Lock) renew() {
	l.mu.Lock()
	ttl, _ := l.renewalTTLs()
	if l.cause != nil || ttl == 0 {
		l.mu.Unlock()
		l.r.scheduler.RenewalDone() // the lock has ended, or the nested locks that wanted this have
		return
	}
	l.inRenewal = true
	l.watch()
	l.renewing()
	l.mu.Unlock()
	_, err := l.startExtend(l.operation(protocol.Extend, ttl), ttl, nil, func(round *quorum.Round[protocol.Operation]) {
		l.r.scheduler.RenewalDone()
		l.renewed(round, ttl)
	})
	if err != nil {
		l.r.scheduler.RenewalDone() // the lock had ended
	}
}

// renewed applies the result of a renewal and schedules the next one.
func (l *Lock) renewed(round *quorum.Round[protocol.Operation], ttl time.Duration) {
	left, err := l.extended(round, ttl)
	if !endedByHolder(err) { // otherwise it has not failed, but come too late to be of use
		l.r.counters.renewal(err)
		l.r.reporter.renewed(l.values, round, ttl, left, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inRenewal = false
	longest, shortest := l.renewalTTLs()
	if l.cause != nil || longest == 0 {
		return
	}
	every := min(ttl, shortest) / renewals
	if err == nil {
		l.r.scheduler.RenewAt(l, round.Start().Add(every))
		l.renewSooner()
		return
	}
	// The pauses shrink while validity runs out, but never to nothing.
	now := l.r.cfg.Clock.Now()
	l.r.scheduler.RenewAt(l, now.Add(min(every, max(minRetry, l.until.Sub(now)/renewals))))
	l.renewSooner()
	l.r.log.Warn("renewal_failed", "renewal failed, trying again",
		"key", errs.Short(l.key), "cause", Cause(err), "left", l.until.Sub(now), "error", err.Error())
}
