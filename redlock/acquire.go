package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/clock"
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
		pause := r.cfg.Clock.NewTimer(r.backoff(tries, free))
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
	if err := checkKey(key); err != nil {
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

// attempt is the algorithm; docs/algorithm.md numbers its steps. With patient it
// also returns after how long the nodes that refused could make a majority, and
// waits for their answers to that.
func (r *Redlock) attempt(ctx context.Context, key string, ttl time.Duration, patient bool) (_ *Lock, free time.Duration, _ error) {
	if err := r.enter(); err != nil {
		return nil, 0, opError("acquire", key, err)
	}
	defer r.attempts.Done()

	// Step 1: a value that nobody else has, and no earlier attempt of ours.
	// What an earlier attempt still has on its way can then not touch this one.
	value, err := r.random.value()
	if err != nil {
		return nil, 0, fmt.Errorf("redlock: acquire %q: no random value: %w", key, err)
	}
	cmd := command{kind: kindAcquire, resource: key, key: r.cfg.KeyPrefix + key, value: value, ttl: millis(ttl)}

	// Steps 2 and 3: the clock is read before the first byte leaves; no node
	// can start its countdown earlier. The caller leaves at the decision.
	round := r.start(quorum.Spec[command]{Op: cmd})
	round.Wait(ctx)

	// Step 4: validity = ttl − elapsed − drift. Until is fixed from the start
	// of the round, so time lost from here on is not credited to the lock.
	tally := round.Tally()
	won := tally.Outcome() == quorum.Won
	if won && clock.Validity(ttl, round.Decided().Sub(round.Start()), r.cfg.Drift) > 0 {
		until := round.Start().Add(ttl - r.cfg.Drift.Of(ttl))
		lock := newLock(ctx, r, round, ttl, until)
		// Checked once more, right before the caller gets it: this goroutine
		// may have been asleep since the decision.
		if r.cfg.Clock.Now().Before(until) {
			r.keeper.endAt(lock, until)
			return lock, 0, nil
		}
	}

	// Step 5: no lock, so nothing may stay.
	free = r.cleanUp(ctx, round, ttl, patient)
	reason, cause := ErrHeld, error(nil)
	switch {
	case won:
		reason = ErrExpired
	case tally.Unavailable():
		reason = ErrNoQuorum
	}
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	return nil, free, r.quorumError(round, reason, cause)
}

// cleanUp deletes what a failed attempt left, on every node that was asked, also
// on those that failed: the SET may have been done all the same. Lanes are in
// order, so a clean-up cannot overtake its SET. It runs whatever becomes of the
// caller's context.
//
// It waits for the nodes that had granted, as the caller is told that nothing
// stays; if patient, also for those that refused, whose reply says how long the
// holder's key lives. The nodes that had not answered at the decision may be a
// moment behind or hung: they get as long again as the others took, twice. So do
// all of them when the caller's context has ended; it is not waited on beyond.
func (r *Redlock) cleanUp(ctx context.Context, round *quorum.Round[command], ttl time.Duration, patient bool) (free time.Duration) {
	round.Withdraw()
	took := round.Decided().Sub(round.Start())
	grace := 2 * max(took, minRoundTrip)
	cmd := *round.Op()
	cmd.kind = kindCleanUp
	answered, silent := make([]bool, len(r.nodes)), make([]bool, len(r.nodes))
	var anyAnswered, anySilent, anyGranted bool
	var lefts []time.Duration // of somebody else's key, on each node that may tell
	for _, b := range round.Ballots() {
		switch {
		case !b.Sent:
			lefts = append(lefts, 0) // was not asked: it may be free for all we know
		case b.Final == quorum.Granted || b.Final == quorum.Refused:
			answered[b.Node], anyAnswered = true, true
			anyGranted = anyGranted || b.Final == quorum.Granted
		default:
			silent[b.Node], anySilent = true, true
		}
	}
	spec := quorum.Spec[command]{Op: cmd, All: true, KeepUntil: r.cfg.Clock.Now().Add(ttl)}
	var behind *quorum.Round[command]
	if anySilent {
		spec.Nodes = silent
		behind = r.start(spec)
	}
	if anyAnswered {
		spec.Nodes = answered
		cleaned := r.start(spec)
		switch {
		case anyGranted && ctx.Err() != nil:
			r.waitFor(context.Background(), cleaned, min(grace, r.cfg.NodeTimeout))
		case anyGranted || patient:
			cleaned.Wait(ctx)
		}
		lefts = append(lefts, remains(cleaned)...)
	}
	if behind != nil {
		r.waitFor(ctx, behind, min(grace, r.cfg.NodeTimeout-took))
		lefts = append(lefts, remains(behind)...)
	}
	return freeAfter(lefts, quorum.Size(len(r.nodes)))
}

// remains is what the nodes that a clean-up has heard of have of somebody else's key.
func remains(cleanUp *quorum.Round[command]) (lefts []time.Duration) {
	for _, b := range cleanUp.Ballots() {
		if b.Final == quorum.Granted {
			lefts = append(lefts, remaining(b.Reply))
		}
	}
	return lefts
}

// waitFor waits for a round for d at the most.
func (r *Redlock) waitFor(ctx context.Context, round *quorum.Round[command], d time.Duration) {
	if d <= 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.cfg.Clock.AfterFunc(d, cancel).Stop()
	round.Wait(ctx)
}

// freeAfter is when need nodes may have no holder's key any more, given what remains
// of it on each node that said so: 0 if that cannot be told.
func freeAfter(lefts []time.Duration, need int) time.Duration {
	if len(lefts) < need {
		return 0
	}
	slices.Sort(lefts)
	return lefts[need-1]
}

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
