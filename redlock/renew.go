package redlock

import (
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// renewals per ttl: the first can fail, and the second, and the lock still
// lives. Redisson's watchdog uses the same third.
const renewals = 3

// minRetry is the shortest pause after a renewal that found no quorum.
const minRetry = 50 * time.Millisecond

// KeepAlive renews the lock in the background, every third of the ttl last asked
// for, until it is released or lost. It returns at once; calling it again, or on
// a lock that has ended, does nothing. A renewal that finds no quorum is tried
// again while validity lasts; one that finds the lock lost ends it, and its
// Context says so.
func (l *Lock) KeepAlive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keepAlive || l.cause != nil {
		return
	}
	l.keepAlive = true
	// The ttl began when the lock was asked for, not now.
	l.renewAt = l.until.Add(l.r.cfg.Drift.Of(l.ttl) - l.ttl + l.ttl/renewals)
	l.reschedule()
}

// reschedule tells the keeper when the lock wants attention; mu is held.
func (l *Lock) reschedule() {
	due := l.until
	if l.keepAlive && !l.renewing && l.renewAt.Before(due) {
		due = l.renewAt
	}
	l.r.keeper.set(l, due)
}

// tick does what is due. The keeper calls it; it never waits for a node.
func (l *Lock) tick(now time.Time) {
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return
	}
	if !now.Before(l.until) {
		l.lose(ErrExpired)
		l.unlock()
		return
	}
	if !l.keepAlive || l.renewing || now.Before(l.renewAt) {
		l.reschedule()
		l.mu.Unlock()
		return
	}
	l.renewing = true
	l.reschedule() // at Until the lock ends, answer or not
	ttl := l.ttl
	l.mu.Unlock()
	_, _ = l.startExtend(ttl, func(round *quorum.Round[*command]) { l.renewed(round, ttl) })
}

// renewed takes the result of a renewal and plans the next one.
func (l *Lock) renewed(round *quorum.Round[*command], ttl time.Duration) {
	err := l.extended(round, ttl)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewing = false
	if l.cause != nil {
		return
	}
	if err == nil {
		l.renewAt = round.Start().Add(l.ttl / renewals)
	} else {
		// Sooner and sooner while validity runs out, but never in a spin.
		now := l.r.cfg.Clock.Now()
		l.renewAt = now.Add(min(l.ttl/renewals, max(minRetry, l.until.Sub(now)/renewals)))
		l.r.cfg.Logger.Warn("redlock: renewal failed, trying again", "key", l.key, "until", l.until, "error", err)
	}
	l.reschedule()
}
