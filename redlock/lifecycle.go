package redlock

import (
	"cmp"
	"context"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// hold begins, at now, the time for which a lock that was acquired is held.
func (l *Lock) hold(now time.Time) {
	l.began = now.Sub(l.r.made)
	l.r.counters.held.Add(1)
	l.r.scheduler.EndAt(l, l.until)
}

// end ends the lock and reports whether it was this call that did. mu is held.
func (l *Lock) end(cause error) bool {
	if l.cause != nil {
		return false
	}
	l.setCause(cause)
	l.r.scheduler.Remove(l)
	l.unwatch()
	return true
}

// setCause records why the lock ended and ends its contexts, and those of the locks that are nested
// in it; mu is held.
func (l *Lock) setCause(cause error) {
	l.endNested(cause)
	l.cause = cause
	if l.outer == nil {
		l.r.counters.held.Add(-1)
		if cause != ErrReleased { // giveUp reports that once it knows more
			l.r.counters.ended(cause)
			l.r.reporter.lockEnded(l, cause)
		}
	}
	if l.cancel != nil {
		l.cancel(cause)
	}
	if l.cancelDo != nil {
		l.cancelDo(cause)
	}
}

// endedBy describes the end of the lock at now.
func (l *Lock) endedBy(cause error, now time.Time) LockEnd {
	return LockEnd{Key: l.key, Held: now.Sub(l.r.made) - l.began, Cause: cause}
}

// expireIfDue ends the lock if Until has come by now, without waiting for the scheduler's goroutine
// to get a processor. The caller holds mu.
func (l *Lock) expireIfDue(now time.Time) {
	if l.cause == nil && !now.Before(l.until) {
		l.lose(ErrExpired)
	}
}

// endWithLock makes the lock call cancel when it ends, in the same step as it ends Context.
func (l *Lock) endWithLock(cancel context.CancelCauseFunc) {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	l.cancelDo = cancel
	if l.cause != nil {
		cancel(l.cause)
	}
}

// endNow ends the lock for its holder. The lock stays scheduled, so that Close finds it among those
// that it has to release.
func (l *Lock) endNow(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil {
		l.setCause(cause)
	}
}

// lose ends a lock that is lost; mu is held.
func (l *Lock) lose(cause error) {
	if l.end(cause) {
		now := l.r.cfg.Clock.Now()
		if l.wait != nil {
			l.wait.End(now)
			l.wait.dequeue("")
		}
		l.r.local.Pass(&l.localLock)
		l.r.log.Warn("lock_lost", "lock lost", "key", errs.Short(l.key), "cause", Cause(cause), "held", l.endedBy(cause, now).Held, "error", errs.Text(cause))
	}
}

// expire ends the lock if Until has come. The scheduler calls it.
func (l *Lock) expire(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		l.r.scheduler.Remove(l)
		return
	}
	if now.Before(l.until) { // it has just been extended
		l.r.scheduler.EndAt(l, l.until)
		return
	}
	l.lose(ErrExpired)
}

// startRelease ends the lock and starts its release. It returns nil if the lock was given up before.
func (l *Lock) startRelease(cause error) *quorum.Round[protocol.Operation] {
	round, _ := l.startEnd(cause, l.operation(protocol.Release, 0))
	return round
}

// startEnd ends the lock and starts the operation that gives its keys up: a Release or a Retain. The
// round is nil if one was started before. ended reports that the lock had not ended before.
func (l *Lock) startEnd(cause error, op protocol.Operation) (round *quorum.Round[protocol.Operation], ended bool) {
	l.order.Lock()
	l.mu.Lock()
	if l.released {
		l.mu.Unlock()
		l.order.Unlock()
		return nil, false
	}
	l.released = true
	leaves := false
	ended = l.end(cause)
	if ended && l.wait != nil {
		// A lost lock has given up its queue entries already, and its caller may be waiting again.
		l.wait.End(l.r.cfg.Clock.Now())
		if leaves = op.Kind != protocol.Release; !leaves {
			op.Queue, op.Sender, op.Observer = l.wait.queue, l.wait.sender(""), l.wait
		}
	}
	keys := l.keysUntil
	if atLeast := l.r.cfg.Clock.Now().Add(l.r.cfg.NodeTimeout); keys.Before(atLeast) {
		keys = atLeast // ask once in any case: keys expire by the nodes' clocks, not by ours
	}
	l.mu.Unlock()

	// A node to which nothing was ever sent has nothing to delete. A proposal that its lane has not
	// sent yet must not be sent after the release.
	var sentTo []bool
	if l.proposals.first != nil && !l.proposals.sentToAll() {
		l.proposals.withdraw()
		if !l.toppedUp && l.wait == nil {
			sentTo = make([]bool, len(l.r.nodes))
			for _, b := range l.proposals.ballots() {
				sentTo[b.Node] = b.Sent
			}
		}
	}
	round = l.r.submit(quorum.Spec[protocol.Operation]{Op: op, Nodes: sentTo, Sure: true, KeepUntil: keys})
	l.order.Unlock()
	round.Arm()
	if leaves {
		l.wait.dequeue("")
	}
	return round, ended
}

// startExtend hands an extension to the lanes. If the lock has ended, it returns the cause instead.
// by is the lock of a call of Extend, l or one nested in it, whose ttl KeepAlive then goes on with.
// It is nil for a renewal.
//
// A caller of Extend waits for NodeTimeout. No caller waits for a renewal, so it may take the
// validity that is left: a node's answer before that counts, and after that nothing more is sent.
// The nodes begin to count the ttl when the extension reaches them, which is never before
// round.Start. So however long the answer takes, a majority has the key until Start + ttl.
func (l *Lock) startExtend(op protocol.Operation, ttl time.Duration, by *Lock, decided func(*quorum.Round[protocol.Operation])) (*quorum.Round[protocol.Operation], error) {
	l.order.Lock()
	if l.proposals.first != nil && l.proposals.sentToAll() && l.proposals.done() {
		l.proposals = proposals{} // nothing is left to withdraw; they are half of a lock's memory
	}
	l.mu.Lock()
	now := l.r.cfg.Clock.Now()
	l.expireIfDue(now)
	if cause := cmp.Or(by, l).cause; cause != nil {
		l.mu.Unlock()
		l.order.Unlock()
		return nil, cause
	}
	within := l.until.Sub(now)
	if by != nil {
		by.ttl, within = ttl, l.r.cfg.NodeTimeout
	}
	l.outlive(now.Add(within).Add(ttl)) // as the lanes may send it as late as that
	l.mu.Unlock()
	round := l.r.submit(quorum.Spec[protocol.Operation]{
		Op:      op,
		Sure:    true,
		Within:  within,
		Decided: decided,
		Done: func(round *quorum.Round[protocol.Operation]) {
			l.topUp(round, ttl) // first, so that Detach finds it among those under way
			l.finished(round)
		},
	})
	l.underWay = append(l.underWay, round)
	l.order.Unlock()
	round.Arm()
	return round, nil
}

// outlive records that one of the lock's keys may live until t; mu is held.
func (l *Lock) outlive(t time.Time) {
	if t.After(l.keysUntil) {
		l.keysUntil = t
	}
}

// extended applies the result of an extension. It counts only with a majority, and only while the
// lock is still valid. The new validity counts from before the extension was sent. left is what was
// left of the old one.
func (l *Lock) extended(round *quorum.Round[protocol.Operation], ttl time.Duration) (left time.Duration, err error) {
	tally := round.Tally()
	until := round.Start().Add(ttl - l.r.cfg.Drift.Of(ttl))
	l.mu.Lock()
	defer l.mu.Unlock()
	left = max(l.until.Sub(l.r.cfg.Clock.Now()), 0)
	switch {
	case l.cause != nil:
		return left, l.opError("extend", l.cause)
	case left == 0:
		// Too late, even with a majority: the holder has learned that the lock is over, or is
		// about to.
		l.lose(ErrExpired)
		return left, l.r.quorumError(round, ErrExpired, nil)
	case tally.Outcome() == quorum.Won:
		// The larger of both: an extension never shortens, and a majority has keys
		// with at least the longer of both ttls.
		if until.After(l.until) {
			l.until = until
			l.r.scheduler.EndAt(l, until)
		}
		return left, nil
	case tally.Outcome() == quorum.Open:
		return left, l.r.quorumError(round, nil, nil) // its caller left
	case tally.Rejected():
		l.lose(ErrNotHeld)
		return left, l.r.quorumError(round, ErrNotHeld, nil)
	default:
		return left, l.r.quorumError(round, ErrNoQuorum, nil)
	}
}

// topUp takes the key on the nodes that lack it, after a majority has extended it: a lock that
// holds 3 of 5 grows to 5 of 5. It never takes a key from another client (NX), and a lock without a
// majority is never topped up.
func (l *Lock) topUp(extension *quorum.Round[protocol.Operation], ttl time.Duration) {
	if extension.Tally().Outcome() != quorum.Won {
		return
	}
	lacking, any := make([]bool, len(l.r.nodes)), false
	for _, b := range extension.Ballots() {
		if b.Final == quorum.Refused {
			lacking[b.Node], any = true, true
		}
	}
	if !any {
		return
	}
	l.grow(lacking, ttl, nil)
}

// growInto takes the key on nodes that have woken the wait after it had won the lock.
func (l *Lock) growInto(nodes []bool, w *wait) {
	l.mu.Lock()
	ttl := l.ttl
	l.mu.Unlock()
	l.grow(nodes, ttl, w)
}

// grow takes the key on more nodes, if it is free there. It also gives up the queue entries that w
// has there; w is nil if there are none.
func (l *Lock) grow(nodes []bool, ttl time.Duration, w *wait) {
	var sender *protocol.Sender
	if w != nil {
		sender = w.sender("")
	}
	l.order.Lock()
	l.mu.Lock()
	now := l.r.cfg.Clock.Now()
	if l.cause != nil && !l.detaching || !now.Before(l.until) {
		l.mu.Unlock()
		l.order.Unlock()
		return
	}
	l.outlive(now.Add(ttl))
	l.mu.Unlock()
	l.toppedUp = true
	spec := quorum.Spec[protocol.Operation]{Op: l.operation(protocol.TopUp, ttl), Nodes: nodes, All: true, Done: l.finished}
	if w != nil {
		spec.Op.Queue, spec.Op.Sender, spec.Op.Observer = w.queue, sender, w
	}
	round := l.r.submit(spec)
	l.underWay = append(l.underWay, round)
	l.order.Unlock()
	round.Arm()
}

func (l *Lock) operation(k protocol.Kind, ttl time.Duration) protocol.Operation {
	c := protocol.Operation{Kind: k, Observer: observer{l.r}, Key: l.key, NodeKey: l.nodeKey, Value: l.value, TTL: protocol.Millis(ttl), Fence: l.fence, Context: l.values}
	if k == protocol.Release || k == protocol.Retain {
		c.Queue = protocol.FlagOf(l.nodeKey.(string))
	}
	return c
}

// opError returns the error of an operation on a lock that has ended.
func (l *Lock) opError(op string, cause error) error { return errs.Op(op, l.key, cause) }
