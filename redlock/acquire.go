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
// It first makes one attempt, as TryAcquire does. If another client has the key, it joins a queue
// that each node keeps for the key. Waiters sleep until the release of the lock wakes the first of
// them. Callers of one Redlock that want the same key share one queue entry. Among themselves they
// get the lock first come, first served. A caller that comes after a release, and before the waiter
// that the release woke, can take the lock, unless Config.Fair is set. A Redlock whose own release
// has just woken a waiter does not overtake it: its next Acquire of the key joins the queue.
//
// If ctx carries a live lock of this Redlock on key, Acquire does not wait for that lock. It returns
// ErrReentrant at once or, with Config.Reentrant, a lock that is nested in it. A caller that holds
// the key and calls Acquire with a context that does not carry the lock waits for itself.
//
// A release by a client of another library wakes nobody, and messages get lost. So when the holder's
// ttl is over the first waiter tries, and those behind it a little later. Every waiter also asks a
// node about the key now and then: first after a second, then after pauses that double up to 15
// seconds. If the answer shows that clients of another library use the key, or if nodes have no
// pub/sub, Acquire tries again after random pauses of at most 100 ms.
//
// If no majority of the nodes answers an attempt within Config.NodeTimeout, the waiter leaves the
// queue. It then asks whether a majority answers, after pauses of at most 100 ms, and of up to 15
// seconds after repeated failures. Once a majority answers, it queues again, behind the waiters that
// came meanwhile. Config.Logger reports such a wait. Without a Logger nothing does, so give ctx a
// deadline.
//
// When ctx ends, Acquire returns a *QuorumError that matches context.Cause(ctx) and the reason
// why the last complete attempt failed: ErrHeld, ErrNoQuorum or ErrExpired. It matches no reason
// if no attempt was complete. If ctx had ended before the call, no node is asked, and the error
// only wraps its cause. Acquire leaves no more behind than TryAcquire does, and gives up its queue
// entry. A node that does not answer now drops the entry once it is the first in the queue.
func (r *Redlock) Acquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	if nested, err := r.joinOuter(ctx, key, ttl); nested != nil || err != nil {
		return nested, err
	}
	a := acquisition{r: r, key: key, ttl: ttl, observed: r.reporter.acquire(ctx, key, ttl)}
	lock, err := a.acquire(ctx)
	a.endWaiting(lock)
	return r.acquired(a.observed, lock, err)
}

// acquire makes the acquisition, as an operation that Close waits for.
func (a *acquisition) acquire(ctx context.Context) (*Lock, error) {
	if err := a.r.enter(); err != nil {
		return nil, errs.Op("acquire", a.key, err)
	}
	defer a.r.operations.Done() // after the queue entry is given up, for which Close waits

	a.caller = a.r.local.Join(a.key)
	lock, err := a.run(ctx)
	if err != nil {
		if w := a.caller.Leave(); w != nil {
			w.giveUp()
		}
		return nil, err
	}
	a.caller.Hold(&lock.localLock)
	return lock, nil
}

// acquisition is a call of Acquire.
type acquisition struct {
	r      *Redlock
	key    string
	ttl    time.Duration
	caller *waitqueue.Caller[wait] // in the local queue
	wait   *wait                   // of the local queue, on the nodes; nil: none yet

	failed  *QuorumError                      // why the last attempt, or probe, has not led to a lock; nil: there was none
	warned  bool                              // it was logged that there is no quorum
	cleanUp *quorum.Round[protocol.Operation] // deletes what an attempt was granted; nil: nothing

	waits    time.Time // since when the caller waits; zero: it does not
	observed *observed
}

// run waits until the caller is the first in its local queue, makes one attempt, and then takes the
// steps of the wait until there is a lock or an error.
func (a *acquisition) run(ctx context.Context) (lock *Lock, err error) {
	defer func() {
		if err != nil && a.cleanUp != nil {
			a.cleanUp.Wait(context.Background()) // no longer than NodeTimeout from its start
		}
	}()
	if isFirst := a.caller.First(); isFirst != nil {
		a.beginWaiting()
		if err := a.await(ctx, isFirst, nil); err != nil {
			return nil, err
		}
	}
	a.wait = a.caller.Wait()
	value := ""
	if a.wait == nil && !a.r.handoffs.Take(a.key) {
		lock, value, err = a.attempt(ctx)
		if lock != nil || err != nil {
			return lock, err
		}
		a.warnNoQuorum()
	}
	a.beginWaiting()
	if a.wait == nil {
		a.beginWait(value)
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
			lock, err = a.try(ctx, step.Prompted)
		}
		if lock != nil || err != nil {
			return lock, err
		}
	}
}

// attempt makes one attempt. An error ends the acquisition. If there is neither an error nor a lock,
// a.failed says why. value is the value of a failed attempt.
func (a *acquisition) attempt(ctx context.Context) (lock *Lock, value string, err error) {
	t := attempt{r: a.r, key: a.key, ttl: a.ttl, wait: a.wait, retries: true, observed: a.observed}
	lock, err = t.run(ctx)
	if err == nil {
		return lock, "", nil
	}
	if t.first != nil {
		value = t.first.Op().Value
	}
	// An attempt that ctx has cut short leaves no clean-up to wait for, but that of the attempt
	// before it may still be under way.
	a.cleanUp = cmp.Or(t.cleanUp, a.cleanUp)
	var failed *QuorumError
	switch {
	case !errors.As(err, &failed):
		return nil, value, err
	case failed.Cause != nil && failed.Reason == nil && a.failed != nil:
		return nil, value, a.contextEnded(failed.Cause) // it knows less than the attempt before it
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
		a.r.log.Warn("no_quorum", "no quorum, waiting", "key", errs.Short(a.key), "cause", Cause(a.failed), "error", a.failed.Error())
	}
}

// beginWait begins the wait on the nodes. value is that of the attempt that has failed before; ""
// if there was none.
func (a *acquisition) beginWait(value string) {
	w := a.r.newWait(a.key)
	w.value = value
	if reason := a.reason(); reason == ErrNoQuorum || reason == ErrExpired {
		w.BeginOutside(a.r.cfg.Clock.Now())
	}
	a.wait = w
	a.caller.SetWait(w)
	a.r.subscriber.Begin(w.nodeKey, w)
}

// try makes an attempt with the queue entry. prompted is the step's Prompted.
func (a *acquisition) try(ctx context.Context, prompted bool) (lock *Lock, err error) {
	if ctx.Err() != nil {
		return nil, a.contextEnded(context.Cause(ctx))
	}
	if !prompted {
		if err := a.await(ctx, a.r.unprompted, nil); err != nil {
			return nil, err
		}
		defer func() { a.r.unprompted <- struct{}{} }()
	}
	a.r.subscriber.Subscribe(a.wait.nodeKey)
	lock, a.wait.value, err = a.attempt(ctx)
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
	failed := a.wait.probe(ctx, a.observed)
	a.r.unprompted <- struct{}{}
	majority := failed == nil
	switch {
	case majority:
		failed = a.r.unasked("acquire", a.key)
		failed.Reason = ErrHeld // or the key is free, and a waiter in the queue can have it
	case failed.Cause != nil:
		return a.contextEnded(failed.Cause)
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

// await waits for the signal or the tick, and then returns nil. An error ends the acquisition.
func (a *acquisition) await(ctx context.Context, signal <-chan struct{}, tick <-chan time.Time) error {
	select {
	case <-signal:
	case <-tick:
	case <-ctx.Done():
		return a.contextEnded(context.Cause(ctx))
	case <-a.r.closing:
		return errs.Op("acquire", a.key, ErrClosed)
	}
	return nil
}

// beginWaiting counts the caller among those that wait.
func (a *acquisition) beginWaiting() {
	if a.waits.IsZero() {
		a.waits = a.r.cfg.Clock.Now()
		a.r.counters.waiting.Add(1)
	}
}

// endWaiting counts the wait, if there was one. lock is nil if it was in vain.
func (a *acquisition) endWaiting(lock *Lock) {
	if a.waits.IsZero() {
		return
	}
	waited := a.r.endOf(lock).Sub(a.waits)
	c := &a.r.counters
	c.waiting.Add(-1)
	c.waitCount.Add(1)
	c.waitDuration.Add(int64(waited))
	if a.observed != nil {
		a.observed.waited = waited
	}
}

// contextEnded returns the error of an acquisition whose context has ended with cause.
func (a *acquisition) contextEnded(cause error) *QuorumError {
	failed := a.failed
	if failed == nil {
		failed = a.r.unasked("acquire", a.key)
		failed.Reason = a.caller.Reason()
	}
	failed.Cause = cause
	return failed
}

// reason returns why the key could not be locked, as last found by this caller or by an earlier one
// in the local queue; nil if neither knows.
func (a *acquisition) reason() error {
	if a.failed != nil {
		return a.failed.Reason
	}
	return a.caller.Reason()
}

// maxUnprompted bounds the tries and probes without a wake-up that a Redlock has under way. While a
// majority hangs, thousands of waits poll. All at once they would keep the nodes and the Redlock
// busy for long after the nodes answer again.
const maxUnprompted = 256

// permits returns a channel that holds maxUnprompted permits.
func permits() chan struct{} {
	all := make(chan struct{}, maxUnprompted)
	for range maxUnprompted {
		all <- struct{}{}
	}
	return all
}
