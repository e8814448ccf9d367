package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/handle"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Resume goes on with the lock of a handle that Detach has returned, in this process or another one.
// It extends the lock on a majority of the nodes, which proves that no other client has it, and
// returns it. The lock has the key, the value and the fencing token of the first holder. Until is ttl
// from before the extension was sent, less the drift margin. The extension never shortens what is
// left of the ttl on the nodes, but this process does not know how much that is, so Until does not
// count it. As after Acquire, the lock's Context carries the values of ctx and
// does not end with it. Nodes that lack the key get it again.
//
// A handle is to be used once. If two processes resume it, both hold the lock, with the same fencing
// token, and no node can tell them apart. The same is true if a process that has resumed a lock
// detaches it, and the old handle is used again. So pass on only the new handle. And never resume a
// lock that was given up: nodes that did not answer its Release or ReleaseAfter are asked again later,
// and then delete the keys of the resumed lock, or let them expire sooner than its Until.
//
// Resume takes one round trip, and never longer than Config.NodeTimeout or until ctx ends. The
// errors of the nodes are a *QuorumError with the Op "resume":
//
//   - ErrNotHeld: so many nodes do not have the lock's value that no majority can have it. The lock
//     was released, or has expired.
//   - ErrNoQuorum: too few nodes answered.
//   - ErrExpired: the answers came after the new validity had ended.
//   - ctx's cause, and none of these: ctx ended before the result was certain.
//
// After the last three the handle can be used again. No key ends sooner than it would have, and some
// may live until ttl from now.
//
// After ErrDuplicateNode too, the nodes were asked, and may have extended the keys. After any other
// error no node was asked. Resume refuses a damaged handle, a handle in a format that this version
// does not know, a handle of a Redlock with another KeyPrefix or another setting of Fencing, and a
// ttl that Acquire would refuse. After Close the error is ErrClosed. If ctx had ended before the
// call, the error is its cause. No error quotes the handle.
func (r *Redlock) Resume(ctx context.Context, handle string, ttl time.Duration) (*Lock, error) {
	if r == nil || r.closing == nil {
		return nil, errNotMade
	}
	if ctx == nil {
		return nil, errNilContext
	}
	h, err := r.checkHandle(handle)
	if err != nil {
		return nil, err
	}
	if ttl, err = r.cfg.checkTTL(ttl); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errs.Op("resume", h.Key, context.Cause(ctx))
	}
	o := r.reporter.observe(ctx, OpResume, h.Key, ttl, time.Time{})
	lock, err := r.resume(ctx, h, ttl, o)
	return r.acquired(o, lock, err)
}

// resume makes the extension, as an operation that Close waits for.
func (r *Redlock) resume(ctx context.Context, h handle.Handle, ttl time.Duration, o *observed) (*Lock, error) {
	if err := r.enter(); err != nil {
		return nil, errs.Op("resume", h.Key, err)
	}
	defer r.operations.Done()
	now := r.cfg.Clock.Now()
	nodeKey := r.cfg.KeyPrefix + h.Key
	l := &Lock{
		r: r, key: h.Key, nodeKey: nodeKey, value: h.Value, values: ctx,
		ttl: ttl, keysUntil: now.Add(h.Left),
	}
	if h.Token != 0 {
		l.fence = &protocol.Fence{Key: protocol.FenceKey(nodeKey), Token: h.Token, Retention: r.retention, Read: now}
	}
	l.outlive(now.Add(r.cfg.NodeTimeout).Add(ttl)) // as the lanes may send it as late as that
	round := r.ask(ctx, quorum.Spec[protocol.Operation]{Op: l.operation(protocol.Extend, ttl), Sure: true}, ttl)
	o.decided(round)
	if err := r.guard.Duplicate(); err != nil {
		return nil, errs.Op("resume", h.Key, err)
	}

	// Only a majority proves that the lock is still ours, and only an answer in time that it will
	// be. Until counts from before the extension was sent, as for any extension.
	l.until = round.Start().Add(ttl - r.cfg.Drift.Of(ttl))
	var reason error
	switch tally := round.Tally(); {
	case tally.Outcome() == quorum.Won && r.cfg.Clock.Now().Before(l.until):
		if h.Token != 0 {
			r.tokens.note(h.Key, h.Token, r.cfg.Clock.Now().UnixMicro()) // our next proposal is above it
		}
		l.underWay = append(l.underWay, round)
		l.hold(r.cfg.Clock.Now())
		round.AfterDone(func() {
			l.topUp(round, ttl)
			l.finished(round)
		})
		return l, nil
	case tally.Outcome() == quorum.Won:
		reason = ErrExpired
	case tally.Outcome() == quorum.Open: // ctx has ended
	case tally.Rejected():
		reason = ErrNotHeld
	default:
		reason = ErrNoQuorum
	}
	failed := r.quorumError(round, reason, context.Cause(ctx))
	failed.Op = "resume"
	return nil, failed
}

// checkHandle decodes a handle, and returns an error if it is none, or not for this Redlock.
func (r *Redlock) checkHandle(text string) (handle.Handle, error) {
	h, err := handle.Decode(text)
	if err == nil && h.Token != 0 && (h.Token < protocol.MinToken || h.Token > protocol.MaxToken) {
		err = handle.ErrForeign
	}
	switch {
	case err != nil:
		return h, fmt.Errorf("redlock: handle %w", err)
	case h.Prefix != r.cfg.KeyPrefix:
		return h, fmt.Errorf("redlock: handle is of a Redlock with another Config.KeyPrefix than %q", errs.Short(r.cfg.KeyPrefix))
	case h.Token == 0 && r.cfg.Fencing:
		return h, fmt.Errorf("redlock: handle has no fencing token, and Config.Fencing is set")
	case h.Token != 0 && !r.cfg.Fencing:
		return h, fmt.Errorf("redlock: handle has a fencing token, and Config.Fencing is not set")
	}
	return h, r.cfg.checkKey(h.Key)
}

// HandleInfo is what a handle says of its lock, without the value.
type HandleInfo struct {
	Key          string // without KeyPrefix
	KeyPrefix    string // Config.KeyPrefix of the Redlock that had the lock
	FencingToken int64  // 0 without Config.Fencing
	TTL          time.Duration
}

// ParseHandle returns what a handle says of its lock: the key, the fencing token, the
// Config.KeyPrefix and whether Config.Fencing was set, both of which Resume needs, and the ttl last
// asked for. It asks no node, so the lock may have expired. The error does not quote the handle.
func ParseHandle(text string) (HandleInfo, error) {
	h, err := handle.Decode(text)
	if err != nil {
		return HandleInfo{}, fmt.Errorf("redlock: handle %w", err)
	}
	return HandleInfo{Key: h.Key, KeyPrefix: h.Prefix, FencingToken: h.Token, TTL: h.TTL}, nil
}
