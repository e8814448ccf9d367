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
	began := l.until.Add(l.r.cfg.Drift.Of(l.ttl) - l.ttl)
	l.r.keeper.renewAt(l, began.Add(l.ttl/renewals))
}

// renew starts a renewal. The keeper calls it when it is due; it never waits for
// a node. The next is planned when this one is decided, so there is never more
// than one under way.
func (l *Lock) renew() {
	l.mu.Lock()
	ttl := l.ttl
	l.mu.Unlock()
	_, err := l.startExtend(ttl, false, func(round *quorum.Round[command]) {
		l.r.keeper.renewed()
		l.renewed(round, ttl)
	})
	if err != nil {
		l.r.keeper.renewed() // it had ended
	}
}

// renewed takes the result of a renewal and plans the next one.
func (l *Lock) renewed(round *quorum.Round[command], ttl time.Duration) {
	err := l.extended(round, ttl)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	if err == nil {
		l.r.keeper.renewAt(l, round.Start().Add(ttl/renewals))
		return
	}
	// Sooner and sooner while validity runs out, but never in a spin.
	now := l.r.cfg.Clock.Now()
	l.r.keeper.renewAt(l, now.Add(min(ttl/renewals, max(minRetry, l.until.Sub(now)/renewals))))
	l.r.journal.warn("renewal failed, trying again", "key", short(l.key), "until", l.until, "error", err.Error())
}
