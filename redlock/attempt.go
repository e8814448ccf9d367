package redlock

import (
	"context"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// attempt is the algorithm; docs/algorithm.md numbers its steps. With a wait it takes what
// is ours in the queue, gives old back first, and keeps the place if it fails; without one
// it is a newcomer's.
//
// A patient caller will try again. It is told what a failed attempt leaves behind.
func (r *Redlock) attempt(ctx context.Context, key string, ttl time.Duration, w *wait, old string, patient bool) (*Lock, remains, error) {
	if err := r.enter(); err != nil {
		return nil, remains{}, errs.Op("acquire", key, err)
	}
	defer r.attempts.Done()

	// Step 1: a value that nobody else has, and no earlier attempt of ours.
	// What an earlier attempt still has on its way can then not touch this one.
	value, err := r.random.value()
	if err != nil {
		return nil, remains{}, fmt.Errorf("redlock: acquire %q: no random value: %w", key, err)
	}
	name := r.cfg.KeyPrefix + key
	cmd := protocol.Operation{Kind: protocol.Acquire, Observer: observer{r}, Key: key, NodeKey: name, Value: value, TTL: protocol.Millis(ttl)}
	if r.cfg.Fencing {
		if cmd.Fence, err = r.newFence(key, name); err != nil {
			return nil, remains{}, err
		}
	}
	switch {
	case w != nil:
		cmd.Queue, cmd.Entry, cmd.Observer = w.queue, w.entry(old), w
	case r.cfg.Fair:
		cmd.Queue, cmd.Entry = protocol.QueueOf(name), r.newcomer(name)
	}

	// Steps 2 and 3: the clock is read before the first byte leaves; no node
	// can start its countdown earlier. The caller leaves at the decision.
	b := bid{first: r.ask(ctx, cmd, ttl)}
	if r.cfg.Fencing {
		r.propose(ctx, &b, cmd)
	} else if b.first.Tally().Outcome() == quorum.Won {
		b.won = b.first
	}

	if err := r.guard.Duplicate(); err != nil {
		return nil, r.giveBack(ctx, &b, ttl, w, protocol.Enqueue, patient), errs.Op("acquire", key, err)
	}

	// Step 4: validity = ttl − elapsed − drift. Until is fixed from the start
	// of the first round, so time lost from here on is not credited to the lock.
	start, last := b.first.Start(), b.last()
	if b.won != nil && clock.Validity(ttl, last.Decided().Sub(start), r.cfg.Drift) > 0 {
		until := start.Add(ttl - r.cfg.Drift.Of(ttl))
		lock := newLock(ctx, r, b, ttl, until)
		lock.wait = w
		// Checked once more, right before the caller gets it: this goroutine
		// may have been asleep since the decision.
		if r.cfg.Clock.Now().Before(until) {
			if w != nil {
				w.won(lock)
			}
			r.scheduler.EndAt(lock, until)
			return lock, remains{}, nil
		}
	}

	// Step 5: no lock, so nothing may stay. A waiter keeps its place in the queue only if
	// the attempt has shown that its turns can be of use: see outside.
	reason := ErrHeld
	switch tally := last.Tally(); {
	case b.won != nil:
		reason, last = ErrExpired, b.won
	case tally.Outcome() == quorum.Won:
		reason = ErrExpired // the proposal did
	case tally.Outcome() == quorum.Open:
		reason = nil // the caller left before anything was certain
	case tally.Unavailable():
		reason = ErrNoQuorum
	}
	back := protocol.Enqueue
	if w != nil && (reason == ErrNoQuorum || reason == ErrExpired) {
		back = protocol.Dequeue
	}
	left := r.giveBack(ctx, &b, ttl, w, back, patient)
	return nil, left, r.quorumError(last, reason, context.Cause(ctx))
}

// bidding is a round of a bid. Who waits is told when all nodes have answered.
func bidding(cmd protocol.Operation) quorum.Spec[protocol.Operation] {
	spec := quorum.Spec[protocol.Operation]{Op: cmd}
	if w, ok := cmd.Observer.(*wait); ok {
		spec.Done = w.failed
	}
	return spec
}

// introduction is how long a Redlock's very first round waits for the nodes that a
// majority did not need, or a quarter of NodeTimeout or of what is left of the lock's
// validity if that is shorter: enough for a second connection to a server that has
// answered on the first.
const introduction = 50 * time.Millisecond

// ask is the first round of an attempt. A Redlock's very first waits for the other nodes
// a little, so that one server that is listed twice is an error from the start. That it
// has one vote does not depend on this.
func (r *Redlock) ask(ctx context.Context, cmd protocol.Operation, ttl time.Duration) *quorum.Round[protocol.Operation] {
	if r.introduced.Load() {
		round := r.start(bidding(cmd))
		round.Wait(ctx)
		return round
	}
	all := make(chan struct{})
	spec := bidding(cmd)
	spec.Heard = func(*quorum.Round[protocol.Operation]) { close(all) }
	round := r.start(spec)
	round.Wait(ctx)
	left := clock.Validity(ttl, r.cfg.Clock.Now().Sub(round.Start()), r.cfg.Drift)
	timer := r.cfg.Clock.NewTimer(max(min(introduction, r.cfg.NodeTimeout/4, left/4), 0))
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C():
	case <-ctx.Done():
		return round
	}
	r.introduced.Store(true)
	return round
}
