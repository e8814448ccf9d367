package redlock

import (
	"sync/atomic"
	"time"
)

// Stats are counters and gauges of a Redlock, as database/sql has them for a pool. The counters
// begin with New and never go back. Nested locks (Config.Reentrant) are not counted.
type Stats struct {
	Held    int64 // locks that are held now
	Waiting int64 // callers of Acquire that wait now, because the key was taken or there was no quorum

	// How acquisitions ended: calls of Acquire, TryAcquire, Do and Resume whose arguments were right.
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

// counters are what Stats returns. Acquisitions of many callers change them, so they are few.
type counters struct {
	held, waiting                       atomic.Int64
	acquired, refused, noQuorum, failed atomic.Int64
	waitCount, waitDuration             atomic.Int64
	released, lostNotHeld, lostExpired  atomic.Int64
	renewed, renewalsFailed             atomic.Int64
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

// hold begins the time of a lock that was acquired.
func (r *Redlock) hold(l *Lock) {
	l.began = r.cfg.Clock.Now().Sub(r.made)
	r.counters.held.Add(1)
	r.scheduler.EndAt(l, l.until)
}

// acquired counts an acquisition that is about to return, and tells the Observer of it. The Observer
// may have taken longer than the lock is valid. Such a lock is not handed to the caller.
func (r *Redlock) acquired(o *observed, lock *Lock, err error) (*Lock, error) {
	c := &r.counters
	switch Cause(err) {
	case "":
		c.acquired.Add(1)
	case "held":
		c.refused.Add(1)
	case "no_quorum":
		c.noQuorum.Add(1)
	default:
		c.failed.Add(1)
	}
	if r.reporter == nil {
		return lock, err
	}
	o.ended(err)
	if lock == nil || lock.Valid() {
		return lock, err
	}
	if r.enter() == nil { // otherwise Close has released it
		lock.startRelease(ErrExpired)
		r.operations.Done()
	}
	failed := r.unasked(o.op.Op, o.op.Key)
	failed.Reason = ErrExpired
	return nil, failed
}

// ended counts the end of a lock, once for each.
func (c *counters) ended(cause error) {
	switch cause {
	case ErrNotHeld:
		c.lostNotHeld.Add(1)
	case ErrExpired:
		c.lostExpired.Add(1)
	default:
		c.released.Add(1)
	}
}

// renewal counts a renewal.
func (c *counters) renewal(err error) {
	if err == nil {
		c.renewed.Add(1)
	} else {
		c.renewalsFailed.Add(1)
	}
}

// endedBy describes the end of the lock, now.
func (l *Lock) endedBy(cause error) LockEnd {
	return LockEnd{Key: l.key, Held: l.r.cfg.Clock.Now().Sub(l.r.made) - l.began, Cause: cause}
}

// beginWaiting counts the caller among those that wait.
func (a *acquisition) beginWaiting() {
	if a.waits.IsZero() {
		a.waits = a.r.cfg.Clock.Now()
		a.r.counters.waiting.Add(1)
	}
}

// endWaiting counts the wait, if there was one.
func (a *acquisition) endWaiting() {
	if a.waits.IsZero() {
		return
	}
	waited := a.r.cfg.Clock.Now().Sub(a.waits)
	c := &a.r.counters
	c.waiting.Add(-1)
	c.waitCount.Add(1)
	c.waitDuration.Add(int64(waited))
	if a.observed != nil {
		a.observed.waited = waited
	}
}
