package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// TryAcquire makes one attempt to lock key for ttl. It takes one round trip, and
// never longer than Config.NodeTimeout, or until ctx ends; if nodes granted it in
// vain, one or two more to have them free again.
//
// Errors: ErrHeld if somebody else has the key; ErrNoQuorum if too few nodes
// answered; ErrExpired if the answers came too late to be of use. All three are
// in a *QuorumError, which also matches ctx's cause if ctx ended the attempt.
// ErrClosed after Close. An error that names an argument means that nobody was
// asked.
//
// After an error no key of ours stays on any node that answers: it is gone on
// return, or, on a node much slower than those that decided, when that node
// answers. One whose answer was lost is asked again until the ttl is over.
func (r *Redlock) TryAcquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	lock, _, err := r.attempt(ctx, key, ttl, false)
	return lock, err
}

// Acquire locks key for ttl, and waits for it until ctx ends. It tries again
// after random pauses of at most 100 ms, sooner if the nodes say that the
// holder's ttl is about to end or if this Redlock releases the key itself.
// Callers of one Redlock who want the same key take turns, first come first
// served; among Redlocks chance decides. Locks are not re-entrant: who holds the
// key and acquires it again waits for itself.
//
// Without a quorum it waits too. Give ctx a deadline, or set Config.Logger, which
// is told; otherwise such a wait is silent.
//
// When ctx ends it returns a *QuorumError that matches context.Cause(ctx) and
// the reason why the last complete attempt failed: ErrHeld, ErrNoQuorum or
// ErrExpired. If ctx had ended before the call nobody is asked, and the error only
// wraps its cause. What it leaves behind is as with TryAcquire.
func (r *Redlock) Acquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	place := r.turns.join(key)
	defer r.turns.leave(key, place)
	var failed *QuorumError
	if place.first != nil {
		failed = &QuorumError{Op: kindAcquire.String(), Key: key, Need: quorum.Size(len(r.nodes)), Total: len(r.nodes)}
		if err := r.await(ctx, failed, place.first, nil); err != nil {
			return nil, err
		}
	}
	for tries := 0; ; tries++ {
		lock, free, err := r.attempt(ctx, key, ttl, true)
		if err == nil {
			return lock, nil
		}
		var now *QuorumError
		switch {
		case !errors.As(err, &now):
			return nil, err
		case now.Cause != nil && tries > 0:
			// It was cut short, and knows less than the one before it.
			failed.Cause = now.Cause
			return nil, failed
		case now.Cause != nil:
			return nil, now
		}
		failed = now
		r.turns.failed(key, place, now.Reason)
		if tries == 0 && now.Reason == ErrNoQuorum {
			r.journal.warn("no quorum, waiting", "key", short(key), "error", err.Error())
		}
		pause := r.cfg.Clock.NewTimer(r.guard.sooner(r.backoff(tries, free)))
		err = r.await(ctx, failed, place.nudge, pause.C())
		pause.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// await returns nil at the signal or the tick. Otherwise the wait is over, and
// failed says why the last attempt had been in vain, if there was one.
func (r *Redlock) await(ctx context.Context, failed *QuorumError, signal <-chan struct{}, tick <-chan time.Time) error {
	select {
	case <-signal:
	case <-tick:
	case <-ctx.Done():
		if failed.Reason == nil {
			failed.Reason = r.turns.reason(failed.Key)
		}
		failed.Cause = context.Cause(ctx)
		return failed
	case <-r.closing:
		return opError("acquire", failed.Key, ErrClosed)
	}
	return nil
}

func (r *Redlock) checkAcquire(ctx context.Context, key string, ttl time.Duration) (time.Duration, error) {
	if r == nil || r.closing == nil {
		return 0, errNotMade
	}
	if ctx == nil {
		return 0, errNilContext
	}
	if err := r.cfg.checkKey(key); err != nil {
		return 0, err
	}
	ttl, err := r.cfg.checkTTL(ttl)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, opError("acquire", key, context.Cause(ctx))
	}
	return ttl, nil
}

var errNilContext = errors.New("redlock: ctx is nil")

const (
	firstPause = 5 * time.Millisecond // a few round trips in a data centre
	lastPause  = 100 * time.Millisecond
)

// backoff is the pause before the next attempt: full jitter, so that contenders
// who split the nodes between them do not meet again, up to 100 ms. The holder's
// key may live less long than that; then there is no reason to wait longer.
func (r *Redlock) backoff(tries int, free time.Duration) time.Duration {
	ceiling := min(firstPause<<min(tries, 10), lastPause)
	pause := time.Millisecond + r.random.below(ceiling)
	if 0 < free && free < pause {
		pause = free + time.Millisecond // Redis expires with that granularity
	}
	return min(pause, lastPause)
}
