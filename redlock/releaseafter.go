package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// ReleaseAfter ends the lock for its holder now, as Release does, and leaves the key taken for d
// from now, so that nobody can lock it sooner, whatever becomes of this process. This is for work
// that is to be done once: at each firing of a timer that many hosts have, whose clocks differ, or
// at most once a minute. d may be longer or shorter than what is left of the ttl. After d a client
// that waits in Acquire gets the lock. A d of zero or less is a Release.
//
// On each node the key expires after d and the drift margin (Config.Drift), counted from the call: the
// ttl whose validity is d. So it does not expire before d by the Redlock's clock, or by any other
// within the margin. If a request is sent late, it asks for what is left, so the key expires at the
// same time. If a node executes a request late, the key expires as much later there. Until then
// Inspect shows the key as held by this lock's holder, and ForceRelease can delete it.
//
// ReleaseAfter takes one round trip, and never longer than Config.NodeTimeout. It does not use ctx,
// and runs even if ctx has ended. Nodes that do not answer are asked again in the background until
// the ttl of the key is over.
//
// Three errors change nothing, and the lock goes on; they are listed below. After any other result the
// lock has ended:
//
//   - nil: a majority has the key until d is over.
//   - ErrNotHeld: so many nodes no longer had the lock's value that no majority could have it. The
//     key is deleted on the others.
//   - ErrExpired: a majority had the lock's value, but the validity was over. The key is deleted.
//   - ErrNoQuorum: too few nodes answered. On the others the key may be taken until the ttl is over,
//     which may be sooner than d or later.
//   - ErrClosed: Close was called before, and releases the lock. The key is not kept.
//
// If the lock was lost before, the key is deleted, and the error also matches the cause of that loss.
// After a Release or another ReleaseAfter the error is ErrReleased, and after Detach ErrDetached.
//
// The errors that change nothing:
//
//   - The lock is nested (Config.Reentrant). The outer lock alone can keep the key taken.
//   - d is above Config.RestartGuard. A master could then forget the key unnoticed.
//   - d and the ttl together are above Config.FenceRetention, with Config.Fencing.
func (l *Lock) ReleaseAfter(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return l.Release(ctx)
	}
	if l.outer != nil {
		return l.opError(protocol.Retain.String(), errNested)
	}
	if err := l.checkAfter(d); err != nil {
		return err
	}
	op := l.operation(protocol.Retain, 0)
	op.Until = l.r.cfg.Clock.Now().Add(l.r.cfg.Drift.For(d))
	return l.giveUp(ctx, op)
}

// checkAfter returns an error if the key cannot be taken for d without a risk.
func (l *Lock) checkAfter(d time.Duration) error {
	l.mu.Lock()
	ttl := l.ttl
	l.mu.Unlock()
	cfg := l.r.cfg
	if cfg.RestartGuard > 0 && d > cfg.RestartGuard {
		return fmt.Errorf("redlock: release after %v is above Config.RestartGuard, %v", d, cfg.RestartGuard)
	}
	if cfg.Fencing && clock.Sum(d, ttl) > cfg.FenceRetention {
		return fmt.Errorf("redlock: release after %v and the ttl %v are above Config.FenceRetention, %v", d, ttl, cfg.FenceRetention)
	}
	return nil
}

// releaseRest deletes the key on the nodes that have retained it, as no majority has. Each node gets
// this after the Retain, on the same lane. Without it the key would stay there until then.
func (l *Lock) releaseRest(until time.Time) {
	l.mu.Lock()
	if l.keysUntil.After(until) {
		until = l.keysUntil
	}
	l.mu.Unlock()
	l.r.start(quorum.Spec[protocol.Operation]{Op: l.operation(protocol.Release, 0), All: true, KeepUntil: until})
}
