package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// TryAcquire makes one attempt to lock key for ttl. It takes one round trip, and
// never longer than Config.NodeTimeout, or until ctx ends; if nodes granted it in
// vain, one or two more to have them free again, whether or not ctx has ended.
//
// Errors: ErrHeld if somebody else has the key, or, with Config.Fair, waits for it;
// ErrNoQuorum if too few nodes answered; ErrExpired if the answers came too late to be
// of use. All three are in a *QuorumError, which also matches ctx's cause if ctx has
// ended. If ctx ended before the nodes' answers had decided the attempt, the *QuorumError
// matches ctx's cause alone: nodes that have not answered yet have not failed. ErrClosed
// after Close. An error that names an argument means that nobody was asked.
//
// After an error no key of ours stays on any node that answers. On return it is gone
// from those that had granted it. One that had not answered yet, as it is much slower
// than those that decided or ctx ended before, is told to delete the key as soon as it
// answers: the key is gone a round trip later. One whose answer was lost is asked again
// until the ttl is over.
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
// first come first served, and have one place in the queue between them. A caller that arrives
// after a release, and before the waiter that the release woke, can take the lock, unless
// Config.Fair is set. A Redlock whose own release has just woken a waiter does not overtake
// it: its next Acquire of the key joins the queue. Locks are not re-entrant: a caller that
// holds the key and acquires it again waits for itself.
//
// A release by a client of another library wakes nobody, and messages get lost: so the
// first in the queue looks when the holder's ttl is over, and everybody now and then,
// after a second, and then each time after as long again as it has waited, up to 15
// seconds. If a look shows that such clients use the key, or on nodes without pub/sub, it
// tries again after random pauses of at most 100 ms.
//
// While no majority of nodes answers within Config.NodeTimeout, the wait has no place in the
// queue, and asks in the same way whether one does; then it queues again, behind those who
// came meanwhile. Give ctx a deadline, or set Config.Logger, which reports such a wait;
// otherwise it is silent.
//
// When ctx ends it returns a *QuorumError that matches context.Cause(ctx) and
// the reason why the last complete attempt failed: ErrHeld, ErrNoQuorum or
// ErrExpired. It matches no reason if no attempt was complete. If ctx had ended
// before the call nobody is asked, and the error only wraps its cause. It
// leaves the same behind as TryAcquire, and gives up its place in the queue. A node that
// cannot be told now keeps the place until its turn comes, and drops it then.
func (r *Redlock) Acquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	place := r.turns.join(key)
	if place.first != nil {
		if err := r.enter(); err != nil {
			r.turns.leave(key, place)
			return nil, errs.Op("acquire", key, err)
		}
		defer r.attempts.Done() // who leaves last leaves the nodes' queue
		failed := r.waiting(key)
		if err := r.await(ctx, failed, place.first, nil); err != nil {
			failed.Reason = r.turns.reason(key, place)
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
		return nil, errs.Op("acquire", key, err)
	}
	defer r.attempts.Done() // so that Close waits until we have left the queue
	defer func() {
		if err != nil {
			r.turns.leave(key, place)
		} else {
			r.turns.hold(key, place, lock)
		}
	}()
	w, left := r.turns.wait(key), remains{}
	failed := r.waiting(key)
	failed.Reason = r.turns.reason(key, place)
	if w == nil && !r.told.take(key) {
		lock, tried, err := r.attempt(ctx, key, ttl, nil, "", true)
		left = tried
		before := failed.Reason
		if !errors.As(err, &failed) {
			return lock, err
		}
		if failed.Cause != nil {
			failed.Reason = cmp.Or(failed.Reason, before)
			return nil, failed
		}
		r.turns.failed(key, failed.Reason)
		r.warnNoQuorum(failed)
	}
	if w == nil {
		w = r.newWait(key)
		w.value = left.value
		if failed.Reason == ErrNoQuorum || failed.Reason == ErrExpired {
			w.begin(r.backoff)
		}
		r.turns.queue(key, w)
		r.subscriber.Begin(w.name, w)
	}
	return r.queueUp(ctx, w, ttl, failed, left)
}

// queueUp does what the wait says until we have the lock or have to give up. left is what
// our last attempt left behind.
func (r *Redlock) queueUp(ctx context.Context, w *wait, ttl time.Duration, failed *QuorumError, left remains) (_ *Lock, err error) {
	defer func() {
		if err != nil {
			left.gone()
		}
	}()
	hears := func(node int) bool { return r.subscriber.Subscribed(node, w.name) }
	now := r.cfg.Clock.Now
	timer := r.cfg.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		step := w.next(now(), hears, r.guard.Counts, r.guard.NextEnd())
		switch step.do {
		case sleep:
			timer.Reset(step.at.Sub(now()))
			if err := r.await(ctx, failed, w.changed, timer.C()); err != nil {
				return nil, err
			}
		case stand:
			r.subscriber.Subscribe(w.name)
			w.stand(step.nodes)
		case probe:
			if err := r.await(ctx, failed, r.unprompted, nil); err != nil {
				return nil, err
			}
			now := w.probe(ctx)
			r.unprompted <- struct{}{}
			switch {
			case now == nil:
				failed = r.waiting(w.key)
				failed.Reason = ErrHeld // or it can be had by who queues for it
			case now.Cause != nil:
				failed.Cause = now.Cause
				return nil, failed
			default:
				failed = now
			}
			r.turns.failed(w.key, failed.Reason)
			w.answered(now == nil, r.backoff)
		case try:
			if ctx.Err() != nil {
				return nil, r.await(ctx, failed, nil, nil)
			}
			if !step.prompted {
				if err := r.await(ctx, failed, r.unprompted, nil); err != nil {
					return nil, err
				}
			}
			r.subscriber.Subscribe(w.name)
			lock, tried, err := r.attempt(ctx, w.key, ttl, w, w.value, true)
			if !step.prompted {
				r.unprompted <- struct{}{}
			}
			if err == nil {
				r.turns.queue(w.key, nil)
				return lock, nil
			}
			// An attempt that was cut short knows of no grants: its predecessor's may
			// still be on their way out.
			left.cleaned, w.value = cmp.Or(tried.cleaned, left.cleaned), tried.value
			var now *QuorumError
			switch {
			case !errors.As(err, &now):
				return nil, err
			case now.Cause != nil && now.Reason == nil && failed.Reason != nil:
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
			w.tried(now.Reason, step.prompted, r.backoff, r.subscriber.Young())
		}
	}
}

// maxUnprompted is how many tries and probes a Redlock has under way that nobody has woken.
// When a majority has hung, thousands of waits poll; all at once they would keep the nodes,
// and whatever else the Redlock does, busy for long after these answer again.
const maxUnprompted = 256

// slots is a channel with a token for each.
func slots() chan struct{} {
	all := make(chan struct{}, maxUnprompted)
	for range maxUnprompted {
		all <- struct{}{}
	}
	return all
}

// waiting is the error of a wait that ends before anything was asked.
func (r *Redlock) waiting(key string) *QuorumError {
	return &QuorumError{Op: protocol.Acquire.String(), Key: key, Need: quorum.Size(len(r.nodes)), Total: len(r.nodes)}
}

func (r *Redlock) warnNoQuorum(failed *QuorumError) {
	if failed.Reason == ErrNoQuorum {
		r.log.Warn("no quorum, waiting", "key", errs.Short(failed.Key), "error", failed.Error())
	}
}

// await returns nil at the signal or the tick. Otherwise the wait is over, and
// failed says why the last attempt failed, if there was one.
func (r *Redlock) await(ctx context.Context, failed *QuorumError, signal <-chan struct{}, tick <-chan time.Time) error {
	select {
	case <-signal:
	case <-tick:
	case <-ctx.Done():
		failed.Cause = context.Cause(ctx)
		return failed
	case <-r.closing:
		return errs.Op("acquire", failed.Key, ErrClosed)
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
		return 0, errs.Op("acquire", key, context.Cause(ctx))
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
