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
// Errors: ErrHeld if somebody else has the key, or, with Config.Fair, waits for it;
// ErrNoQuorum if too few nodes answered; ErrExpired if the answers came too late to be
// of use. All three are in a *QuorumError, which also matches ctx's cause if ctx ended
// the attempt. ErrClosed after Close. An error that names an argument means that nobody
// was asked.
//
// After an error no key of ours stays on any node that answers: it is gone on
// return, or, on a node much slower than those that decided, when that node
// answers. One whose answer was lost is asked again until the ttl is over.
func (r *Redlock) TryAcquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	lock, _, err := r.attempt(ctx, key, ttl, nil, "", false)
	return lock, err
}

// Acquire locks key for ttl, and waits for it until ctx ends.
//
// It first tries as TryAcquire does. If somebody else has the key it stands in a queue
// that each node keeps for it, and the release of the lock wakes the first in that queue:
// nobody polls. Callers of one Redlock who want the same key take turns before that,
// first come first served, and have one place in the queue between them. A caller who
// comes in the very instant between a release and the arrival of whom that woke can take
// the lock, unless Config.Fair; who has just released the key himself, and woken
// somebody, joins the queue. Locks are not re-entrant: who holds the key and acquires it
// again waits for itself.
//
// A release by a client of another library wakes nobody, and messages get lost: so the
// first in the queue looks when the holder's ttl is over, and everybody now and then,
// after a second, and then each time after as long again as it has waited, up to 15
// seconds. On nodes without pub/sub it tries again after random pauses of at most 100
// ms. So it does without a quorum. Give ctx a deadline, or set Config.Logger, which is
// told; otherwise such a wait is silent.
//
// When ctx ends it returns a *QuorumError that matches context.Cause(ctx) and
// the reason why the last complete attempt failed: ErrHeld, ErrNoQuorum or
// ErrExpired. If ctx had ended before the call nobody is asked, and the error only
// wraps its cause. What it leaves behind is as with TryAcquire; the place in the queue
// is given up, and where that cannot be said now, it is lost when it is our turn.
func (r *Redlock) Acquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	place := r.turns.join(key)
	if place.first != nil {
		if err := r.enter(); err != nil {
			r.turns.leave(key, place)
			return nil, opError("acquire", key, err)
		}
		defer r.attempts.Done() // who leaves last leaves the nodes' queue
		if err := r.await(ctx, r.waiting(key), place.first, nil); err != nil {
			r.turns.leave(key, place)
			return nil, err
		}
	}
	return r.acquire(ctx, key, ttl, place)
}

// acquire is for the first of the callers who want the key. It gives their place up.
func (r *Redlock) acquire(ctx context.Context, key string, ttl time.Duration, place *place) (lock *Lock, err error) {
	if err := r.enter(); err != nil {
		r.turns.leave(key, place)
		return nil, opError("acquire", key, err)
	}
	defer r.attempts.Done() // so that Close waits until we have left the queue
	defer func() {
		if err != nil {
			r.turns.leave(key, place)
		} else {
			r.turns.hold(key, place, lock)
		}
	}()
	w, value := r.turns.wait(key), ""
	failed := r.waiting(key)
	if w == nil && !r.told.take(key) {
		lock, tried, err := r.attempt(ctx, key, ttl, nil, "", true)
		if !errors.As(err, &failed) || failed.Cause != nil {
			return lock, err
		}
		value = tried
		r.turns.failed(key, failed.Reason)
		r.warnNoQuorum(failed)
	}
	if w != nil {
		failed.Reason = r.turns.reason(key) // it is somebody's who has tried
	} else {
		w = r.newWait(key)
		w.value = value
		r.turns.queue(key, w)
		r.ears.begin(w)
	}
	return r.queueUp(ctx, w, ttl, failed)
}

// queueUp does what the wait says until we have the lock or have to give up.
func (r *Redlock) queueUp(ctx context.Context, w *wait, ttl time.Duration, failed *QuorumError) (*Lock, error) {
	hears := func(node int) bool { return r.ears.hears(node, w) }
	now := r.cfg.Clock.Now
	timer := r.cfg.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		step := w.next(now(), hears, r.guard.counts, r.guard.ends())
		switch step.do {
		case sleep:
			timer.Reset(step.at.Sub(now()))
			if err := r.await(ctx, failed, w.changed, timer.C()); err != nil {
				return nil, err
			}
		case stand:
			r.ears.tune(w)
			w.stand(step.nodes)
		case try:
			if ctx.Err() != nil {
				return nil, r.await(ctx, failed, nil, nil)
			}
			r.ears.tune(w)
			lock, value, err := r.attempt(ctx, w.key, ttl, w, w.value, true)
			if err == nil {
				r.turns.queue(w.key, nil)
				return lock, nil
			}
			w.value = value
			var now *QuorumError
			switch {
			case !errors.As(err, &now):
				return nil, err
			case now.Cause != nil && failed.Reason != nil:
				// It was cut short, and knows less than the one before it.
				failed.Cause = now.Cause
				return nil, failed
			case now.Cause != nil:
				return nil, now
			}
			if failed.Reason == nil {
				r.warnNoQuorum(now)
			}
			failed = now
			r.turns.failed(w.key, now.Reason)
			w.tried(now.Reason, r.backoff, r.ears.fresh())
		}
	}
}

// waiting is the error of a wait that ends before anything was asked.
func (r *Redlock) waiting(key string) *QuorumError {
	return &QuorumError{Op: kindAcquire.String(), Key: key, Need: quorum.Size(len(r.nodes)), Total: len(r.nodes)}
}

func (r *Redlock) warnNoQuorum(failed *QuorumError) {
	if failed.Reason == ErrNoQuorum {
		r.journal.warn("no quorum, waiting", "key", short(failed.Key), "error", failed.Error())
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

// backoff is the pause before the next of so many attempts that nobody wakes us for:
// full jitter, so that contenders who split the nodes between them do not meet again, up
// to 100 ms.
func (r *Redlock) backoff(tries int) time.Duration {
	return time.Millisecond + r.random.below(min(firstPause<<min(tries-1, 10), lastPause)-time.Millisecond)
}
