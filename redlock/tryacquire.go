package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/label"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// TryAcquire makes one attempt to lock key for ttl. The decision takes one round trip, and never
// longer than Config.NodeTimeout, or until ctx ends. If nodes granted a lock that found no majority,
// TryAcquire takes one or two more round trips to delete the key there, even if ctx has ended.
//
// Errors: ErrHeld if another client has the key, or, with Config.Fair, waits for it;
// ErrNoQuorum if too few nodes answered; ErrExpired if the answers came too late to be of use.
// All three come in a *QuorumError, which also matches ctx's cause if ctx has ended. If ctx
// ended before the answers had decided the attempt, the *QuorumError matches ctx's cause alone:
// nodes that have not answered yet have not failed. ErrClosed after Close. ErrReentrant if ctx
// carries a live lock of this Redlock on key; with Config.Reentrant TryAcquire joins it instead.
// After an error that names an argument, no node was asked.
//
// If several clients call TryAcquire at one instant, each may get a minority of the nodes. Then all of
// them get ErrHeld, although nobody has the key. If one of them must get it, as for a job on a timer,
// call Acquire with a context that ends soon: its queue ends the split. Or call Inspect after ErrHeld,
// and try again after a random pause unless the verdict is VerdictHeld or VerdictForeign. The command
// (redlock run --nonblock) and the integrations for schedulers do the latter.
//
// After an error no key of this attempt stays on any node that answers. When TryAcquire returns, the
// key is gone from the nodes that had granted it, unless they do not answer any more: it waits for
// them for at most Config.NodeTimeout or, if ctx ended during the attempt, twice as long as that
// took (at least 2 ms). A node that answers later deletes the key then. A node whose answer was lost
// is asked again until the ttl is over. If such a node executes the SET after all that, as it hung
// while its connection broke, the key stays there until its ttl.
func (r *Redlock) TryAcquire(ctx context.Context, key string, ttl time.Duration) (*Lock, error) {
	ttl, err := r.checkAcquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	if nested, err := r.joinOuter(ctx, key, ttl); nested != nil || err != nil {
		return nested, err
	}
	o := r.reporter.acquire(ctx, key, ttl)
	a := attempt{r: r, key: key, ttl: ttl, observed: o}
	lock, err := a.run(ctx)
	return r.acquired(o, lock, err)
}

// acquired counts and reports an acquisition that is about to return. The Observer may have taken
// longer than the lock is valid. Such a lock is not handed to the caller.
func (r *Redlock) acquired(o *observed, lock *Lock, err error) (*Lock, error) {
	c := &r.counters
	switch Cause(err) {
	case "":
		c.acquired.Add(1)
	case "held":
		c.refused.Add(1)
	case "no_quorum":
		c.noQuorum.Add(1)
	default:
		c.failed.Add(1)
	}
	if r.reporter == nil {
		return lock, err
	}
	op := o.op
	o.ended(r.endOf(lock), err)
	if lock == nil || lock.Valid() {
		return lock, err
	}
	if err := r.enter(); err != nil {
		return nil, errs.Op(op.Op, op.Key, err) // Close has released it
	}
	defer r.operations.Done()
	if op.Op == OpAcquire { // the handle of a Resume stays good
		lock.startRelease(ErrExpired)
	}
	failed := r.unasked(op.Op, op.Key)
	failed.Reason = ErrExpired
	return nil, failed
}

// endOf returns when an acquisition ended that has the lock, or that has just failed if lock is nil.
func (r *Redlock) endOf(lock *Lock) time.Time {
	if lock == nil {
		return r.cfg.Clock.Now()
	}
	return r.made.Add(lock.began)
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

// attempt is one attempt to take a key.
type attempt struct {
	r       *Redlock
	key     string
	ttl     time.Duration
	wait    *wait // the wait that makes this try; nil for a newcomer
	retries bool  // the caller makes another attempt after a failure

	proposals
	observed *observed
	// cleanUp deletes the key of a failed attempt on the nodes that had granted it. It is nil if
	// there are none, and if giveBack has waited for them.
	cleanUp *quorum.Round[protocol.Operation]
}

// run makes the attempt. docs/algorithm.md numbers its steps.
func (a *attempt) run(ctx context.Context) (*Lock, error) {
	r := a.r
	if err := r.enter(); err != nil {
		return nil, errs.Op("acquire", a.key, err)
	}
	defer r.operations.Done()

	// Step 1: a value that no other attempt has, also none of this client. What an earlier
	// attempt still has on its way can then not affect this one.
	op, err := a.operation(ctx)
	if err != nil {
		return nil, err
	}

	// Steps 2 and 3: the clock is read before the first byte leaves, so no node can start its
	// countdown earlier. The caller leaves at the decision.
	a.first = r.ask(ctx, a.spec(op), a.ttl)
	a.observed.decided(a.first)
	if r.cfg.Fencing {
		a.propose(ctx, op)
	} else if a.first.Tally().Outcome() == quorum.Won {
		a.winner = a.first
	}
	if err := r.guard.Duplicate(); err != nil {
		a.giveBack(ctx, true)
		return nil, errs.Op("acquire", a.key, err)
	}

	// Step 4: validity = ttl − elapsed − drift. Until is fixed from the start of the first
	// round, so time that is lost from here on is not credited to the lock.
	start := a.first.Start()
	if a.winner != nil && clock.Validity(a.ttl, a.last().Decided().Sub(start), r.cfg.Drift) > 0 {
		lock := a.lock(ctx, start.Add(a.ttl-r.cfg.Drift.Of(a.ttl)))
		// Checked once more, right before the caller gets the lock: this goroutine may have
		// been asleep since the decision.
		if now := r.cfg.Clock.Now(); now.Before(lock.until) {
			if a.wait != nil {
				a.wait.won(lock)
			}
			lock.hold(now)
			return lock, nil
		}
	}

	// Step 5: no lock, so nothing may stay. A waiter gives up its queue entry if no majority
	// has answered the try in time, as its next turns would probably be in vain too.
	decisive, reason := a.outcome()
	keepEntry := reason != ErrNoQuorum && reason != ErrExpired
	a.giveBack(ctx, keepEntry)
	return nil, r.quorumError(decisive, reason, context.Cause(ctx))
}

// operation returns the operation of the first round.
func (a *attempt) operation(ctx context.Context) (op protocol.Operation, err error) {
	r, nodeKey := a.r, a.r.cfg.KeyPrefix+a.key
	id, err := r.random.uuid()
	if err != nil {
		return op, fmt.Errorf("redlock: acquire %q: no random value: %w", a.key, err)
	}
	op = protocol.Operation{Kind: protocol.Acquire, Observer: observer{r}, Key: a.key, NodeKey: nodeKey, TTL: protocol.Millis(a.ttl), Context: ctx}
	if r.cfg.Fencing {
		if op.Fence, err = r.newFence(a.key, nodeKey); err != nil {
			return op, err
		}
		op.Value = label.Value(id, op.Fence.Read, r.cfg.Owner)
	} else {
		op.Value = label.Value(id, r.cfg.Clock.Now(), r.cfg.Owner)
	}
	switch {
	case a.wait != nil:
		op.Queue, op.Sender, op.Observer = a.wait.queue, a.wait.sender(a.wait.value), a.wait
	case r.cfg.Fair:
		op.Queue, op.Sender = protocol.QueueOf(nodeKey), r.sender(nodeKey)
	}
	return op, nil
}

// spec describes the round that sends op. A wait is notified when the round is done.
func (a *attempt) spec(op protocol.Operation) quorum.Spec[protocol.Operation] {
	spec := quorum.Spec[protocol.Operation]{Op: op}
	if a.wait != nil {
		spec.Done = a.wait.roundDone
	}
	return spec
}

// firstRoundGrace is how long a Redlock's very first round waits for the nodes that a majority did
// not need, unless a quarter of NodeTimeout, or of what is left of the lock's validity, is
// shorter. It is enough for a second connection to a server that has answered on the first.
const firstRoundGrace = 50 * time.Millisecond

// ask sends the first round for a lock and waits for its decision. The very first round of a Redlock
// also waits for the other nodes a little, so that a server that is listed twice is an error from
// the start. A duplicate never gets a second vote, with or without this wait.
func (r *Redlock) ask(ctx context.Context, spec quorum.Spec[protocol.Operation], ttl time.Duration) *quorum.Round[protocol.Operation] {
	if r.identified.Load() {
		round := r.start(spec)
		round.Wait(ctx)
		return round
	}
	all, heard := make(chan struct{}), spec.Heard
	spec.Heard = func(round *quorum.Round[protocol.Operation]) {
		close(all)
		if heard != nil {
			heard(round)
		}
	}
	round := r.start(spec)
	round.Wait(ctx)
	left := clock.Validity(ttl, r.cfg.Clock.Now().Sub(round.Start()), r.cfg.Drift)
	timer := r.cfg.Clock.NewTimer(max(min(firstRoundGrace, r.cfg.NodeTimeout/4, left/4), 0))
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C():
	case <-ctx.Done():
		return round
	}
	r.identified.Store(true)
	return round
}

// lock returns the lock that was won, valid until then.
func (a *attempt) lock(ctx context.Context, until time.Time) *Lock {
	op := a.winner.Op()
	return &Lock{
		r: a.r, key: op.Key, nodeKey: op.NodeKey, value: op.Value, fence: op.Fence,
		values: ctx, proposals: a.proposals, wait: a.wait,
		until: until, ttl: a.ttl, keysUntil: a.last().Start().Add(a.ttl),
	}
}

// outcome returns the round that shows why there is no lock, and the reason. The reason is nil if
// the caller left before anything was certain.
func (a *attempt) outcome() (decisive *quorum.Round[protocol.Operation], reason error) {
	last := a.last()
	switch tally := last.Tally(); {
	case a.winner != nil:
		return a.winner, ErrExpired
	case tally.Outcome() == quorum.Won:
		return last, ErrExpired // decided too late; see fresh
	case tally.Outcome() == quorum.Open:
		return last, nil
	case tally.Unavailable():
		return last, ErrNoQuorum
	}
	return last, ErrHeld
}
