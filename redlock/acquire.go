package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/waitqueue"
)

// Acquire locks key for ttl, and waits for it until ctx ends.
//
// It first tries as TryAcquire does. If another client has the key, it joins a queue that each
// node keeps for the key. Waiters sleep until the release of the lock wakes the first of them.
// Callers of one Redlock that want the same key take turns before that, first come first
// served, and have one queue entry between them. A caller that comes after a release, and before
// the waiter that the release woke, can take the lock, unless Config.Fair is set. A Redlock
// whose own release has just woken a waiter does not overtake it: its next Acquire of the key
// joins the queue. Locks are not re-entrant: a caller that holds the key and acquires it again
// waits for itself.
//
// A release by a client of another library wakes nobody, and messages get lost. So when
// the holder's ttl is over the first waiter tries, and those behind it a little later. Every
// waiter also looks at a node now and then: first after a second, then after pauses that double
// up to 15 seconds. If a look shows
// that clients of another library use the key, or if nodes have no pub/sub, Acquire tries again
// after random pauses of at most 100 ms.
//
// While no majority of the nodes answers within Config.NodeTimeout, the wait has no queue entry.
// It asks whether a majority answers, after pauses of at most 100 ms, and of up to 15 seconds after
// repeated failures; then it queues again, behind the waiters that came meanwhile. Config.Logger
// reports such a wait; otherwise it is silent, so give ctx a deadline.
//
// When ctx ends, Acquire returns a *QuorumError that matches context.Cause(ctx) and the reason
// why the last complete attempt failed: ErrHeld, ErrNoQuorum or ErrExpired. It matches no reason
// if no attempt was complete. If ctx had ended before the call, no node is asked, and the error
// only wraps its cause. Acquire leaves the same behind as TryAcquire, and gives up its queue
// entry. A node that does not answer now keeps the entry until its turn comes, and then drops it.
func (r *Redlock) Acquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	if err := r.enter(); err != nil {
		return nil, errs.Op("acquire", key, err)
	}
	defer r.attempts.Done() // after the queue entry is given up, for which Close waits

	a := acquisition{r: r, key: key, ttl: ttl, caller: r.local.Join(key)}
	lock, err := a.run(ctx)
	if err != nil {
		if w := a.caller.Leave(); w != nil {
			w.giveUp()
		}
		return nil, err
	}
	a.caller.Hold(&lock.local)
	return lock, nil
}

// acquisition is a call of Acquire.
type acquisition struct {
	r      *Redlock
	key    string
	ttl    time.Duration
	caller *waitqueue.Caller[wait] // in the local queue
	wait   *wait                   // of the local queue, on the nodes; nil: none yet

	failed  *QuorumError                      // why the last attempt failed; nil: there was none
	warned  bool                              // it was logged that there is no quorum
	cleanUp *quorum.Round[protocol.Operation] // deletes what an attempt was granted; nil: nothing
}

// run waits for the caller's turn among the callers of this Redlock, tries once, and then does
// what the wait says until there is a lock or an error.
func (a *acquisition) run(ctx context.Context) (lock *Lock, err error) {
	defer func() {
		if err != nil && a.cleanUp != nil {
			a.cleanUp.Wait(context.Background()) // no longer than NodeTimeout from its start
		}
	}()
	if first := a.caller.First(); first != nil {
		if err := a.await(ctx, first, nil); err != nil {
			return nil, err
		}
	}
	a.wait = a.caller.Wait()
	value := ""
	if a.wait == nil && !a.r.handoffs.Take(a.key) {
		lock, value, err = a.try(ctx)
		if lock != nil || err != nil {
			return lock, err
		}
		a.warnNoQuorum()
	}
	if a.wait == nil {
		a.queue(value)
	}

	now := a.r.cfg.Clock.Now
	timer := a.r.cfg.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		switch step := a.wait.next(); step.Do {
		case waitqueue.Sleep:
			timer.Reset(step.At.Sub(now()))
			err = a.await(ctx, a.wait.Changed(), timer.C())
		case waitqueue.Enqueue:
			a.wait.enqueue(step.Nodes)
		case waitqueue.Probe:
			err = a.probe(ctx)
		case waitqueue.Try:
			lock, err = a.tryQueued(ctx, step.Prompted)
		}
		if lock != nil || err != nil {
			return lock, err
		}
	}
}

// try makes one attempt. An error ends the acquisition; without one and without a lock, a.failed
// says why. value is what a failed attempt tried with.
func (a *acquisition) try(ctx context.Context) (lock *Lock, value string, err error) {
	t := attempt{r: a.r, key: a.key, ttl: a.ttl, wait: a.wait, retries: true}
	lock, err = t.run(ctx)
	if err == nil {
		return lock, "", nil
	}
	if t.first != nil {
		value = t.first.Op().Value
	}
	// An attempt that was cut short knows of no grants: those of the one before it may still
	// be on their way out.
	a.cleanUp = cmp.Or(t.cleanUp, a.cleanUp)
	var failed *QuorumError
	switch {
	case !errors.As(err, &failed):
		return nil, value, err
	case failed.Cause != nil && failed.Reason == nil && a.failed != nil:
		return nil, value, a.end(failed.Cause) // it knows less than the attempt before it
	case failed.Cause != nil:
		failed.Reason = cmp.Or(failed.Reason, a.caller.Reason())
		return nil, value, failed
	}
	a.failed = failed
	a.caller.Failed(failed.Reason)
	return nil, value, nil
}

// warnNoQuorum logs that the last attempt or probe found no quorum, once until a probe finds one.
func (a *acquisition) warnNoQuorum() {
	if a.failed.Reason == ErrNoQuorum && !a.warned {
		a.warned = true
		a.r.log.Warn("no quorum, waiting", "key", errs.Short(a.key), "error", a.failed.Error())
	}
}

// queue begins the wait on the nodes, after an attempt with this value failed; "" if there was
// none.
func (a *acquisition) queue(value string) {
	w := a.r.newWait(a.key)
	w.value = value
	if reason := a.reason(); reason == ErrNoQuorum || reason == ErrExpired {
		w.BeginOutside(a.r.cfg.Clock.Now())
	}
	a.wait = w
	a.caller.SetWait(w)
	a.r.subscriber.Begin(w.nodeKey, w)
}

// tryQueued makes an attempt with the queue entry. prompted is the step's Prompted.
func (a *acquisition) tryQueued(ctx context.Context, prompted bool) (lock *Lock, err error) {
	if ctx.Err() != nil {
		return nil, a.end(context.Cause(ctx))
	}
	if !prompted {
		if err := a.await(ctx, a.r.unprompted, nil); err != nil {
			return nil, err
		}
		defer func() { a.r.unprompted <- struct{}{} }()
	}
	a.r.subscriber.Subscribe(a.wait.nodeKey)
	lock, a.wait.value, err = a.try(ctx)
	switch {
	case err != nil:
	case lock != nil:
		a.caller.SetWait(nil)
	default:
		a.wait.Tried(a.r.cfg.Clock.Now(), a.failed.Reason == ErrHeld, prompted, a.r.subscriber.WarmUp())
	}
	return lock, err
}

// probe asks whether a majority answers, so that the wait can queue again.
func (a *acquisition) probe(ctx context.Context) error {
	if err := a.await(ctx, a.r.unprompted, nil); err != nil {
		return err
	}
	failed := a.wait.probe(ctx)
	a.r.unprompted <- struct{}{}
	majority := failed == nil
	switch {
	case majority:
		failed = a.newError()
		failed.Reason = ErrHeld // or the key is free, and a waiter in the queue can have it
	case failed.Cause != nil:
		return a.end(failed.Cause)
	}
	a.failed = failed
	a.caller.Failed(failed.Reason)
	// A try that failed may have had other reasons, such as a node that denies the queue. A probe
	// that fails shows that there is no quorum.
	if majority {
		a.warned = false
	} else {
		a.warnNoQuorum()
	}
	a.wait.Probed(a.r.cfg.Clock.Now(), majority)
	return nil
}

// await returns nil at the signal or the tick. An error ends the acquisition.
func (a *acquisition) await(ctx context.Context, signal <-chan struct{}, tick <-chan time.Time) error {
	select {
	case <-signal:
	case <-tick:
	case <-ctx.Done():
		return a.end(context.Cause(ctx))
	case <-a.r.closing:
		return errs.Op("acquire", a.key, ErrClosed)
	}
	return nil
}

// end returns the error of an acquisition whose context has ended with cause.
func (a *acquisition) end(cause error) *QuorumError {
	failed := a.failed
	if failed == nil {
		failed = a.newError()
		failed.Reason = a.caller.Reason()
	}
	failed.Cause = cause
	return failed
}

// newError returns an error without any node's answer.
func (a *acquisition) newError() *QuorumError {
	nodes := len(a.r.nodes)
	return &QuorumError{Op: protocol.Acquire.String(), Key: a.key, Need: quorum.Size(nodes), Total: nodes}
}

// reason returns why the key was not to be had, as last found by this caller or by an earlier one
// in the local queue; nil if neither knows.
func (a *acquisition) reason() error {
	if a.failed != nil {
		return a.failed.Reason
	}
	return a.caller.Reason()
}

// maxUnprompted is how many tries and probes without a wake-up a Redlock has under way. When a
// majority has hung, thousands of waits poll; all at once they would keep the nodes, and whatever
// else the Redlock does, busy for long after these answer again.
const maxUnprompted = 256

// permits returns a channel with a permit for each such try or probe.
func permits() chan struct{} {
	all := make(chan struct{}, maxUnprompted)
	for range maxUnprompted {
		all <- struct{}{}
	}
	return all
}
