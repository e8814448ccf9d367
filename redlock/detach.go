package redlock

import (
	"fmt"
	"slices"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/handle"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Detach ends the lock here without releasing it. It returns a handle: a text with which this or
// another process can go on with the lock, by Resume, until the keys expire. Nobody renews the lock
// between Detach and Resume, so the last ttl must be long enough for the hand-over.
//
// The lock's Context ends with the cause ErrDetached, before another process can have the handle.
// KeepAlive's renewals stop, and Close does not release the lock. Extend, Release and a second
// Detach return ErrDetached and ask no node. Callers of Acquire that wait in this Redlock go on
// waiting, on the nodes.
//
// The handle is a secret, as Value is: it can be used to release the lock. It is meant for one
// Resume; see there. It has only letters, digits, '.', '-' and '_', and is some 120 characters long,
// plus four for three of the key.
//
// Detach waits until no more of this lock's operations are under way, so that none of them takes the
// key after the other process has released it. If an extension has just found nodes without the key,
// they get it first. Nodes usually answer within a round trip; Detach waits no longer than
// Config.NodeTimeout. A SET that a node executes later than that can leave the
// key there until its ttl, on a minority of the nodes, as after a Release that such a node does not
// answer.
//
// If the lock has ended already, the error is the cause, such as ErrExpired or ErrReleased. After
// Close it is ErrClosed. If the key with its prefix is longer than 10 KB, the error says so and the
// lock goes on, as does a nested lock (Config.Reentrant), which cannot be detached. With an error the
// handle is empty.
func (l *Lock) Detach() (handle string, err error) {
	if l.outer != nil {
		return "", l.opError("detach", errNested)
	}
	if err := l.r.enter(); err != nil {
		return "", l.opError("detach", err)
	}
	defer l.r.operations.Done()

	if err := l.startDetach(); err != nil {
		return "", err
	}
	l.r.local.Pass(&l.localLock)

	// What the lanes have not sent is dropped, so that no extension follows the hand-over. Top-ups
	// have time until the end. What the lanes have sent can reach a node late. An extension does no
	// harm then: it finds another value, or prolongs the key of the lock that was resumed, which
	// keysUntil allows for. A proposal or a top-up could take a key that was released meanwhile,
	// hence the wait. Its votes do not matter: the lock had its majority before. Other rounds of this
	// Redlock may go on, such as the clean-up of an earlier attempt. They have other values.
	for _, round := range l.unfinished() {
		if round.Op().Kind != protocol.TopUp {
			round.Withdraw()
		}
	}
	timer := l.r.cfg.Clock.NewTimer(l.r.cfg.NodeTimeout)
	defer timer.Stop()
	for rounds := l.unfinished(); len(rounds) > 0; rounds = l.unfinished() {
		if !awaitDone(rounds, timer) {
			break
		}
	}
	for _, round := range l.detached() {
		round.Withdraw()
	}
	return l.handle()
}

// startDetach ends the lock. It returns an error, and changes nothing, if the lock has ended or is
// too long for a handle.
func (l *Lock) startDetach() error {
	if _, err := l.handle(); err != nil {
		return err
	}
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.r.cfg.Clock.Now()
	l.expireIfDue(now)
	if l.cause != nil {
		return l.opError("detach", l.cause)
	}
	// From here on no extension is sent for the lock: startExtend, which also holds order, finds the
	// cause; startRelease finds released; and the scheduler has no entry by which Close would find
	// the lock. Top-ups are sent until detaching is over.
	l.released, l.detaching = true, true
	l.end(ErrDetached)
	if l.wait != nil {
		// The queue entries are this Redlock's, not the lock's. Their removal may arrive at any
		// time: it does not touch the key.
		l.wait.End(now)
		l.wait.dequeue("")
	}
	return nil
}

// unfinished lists the lock's rounds that not all lanes have finished with.
func (l *Lock) unfinished() []*quorum.Round[protocol.Operation] {
	l.order.Lock()
	defer l.order.Unlock()
	rounds := append(l.proposals.rounds(), l.underWay...)
	return slices.DeleteFunc(rounds, func(round *quorum.Round[protocol.Operation]) bool { return round.Over() })
}

// detached ends the time in which top-ups are sent. It returns those that not all lanes have
// finished with.
func (l *Lock) detached() []*quorum.Round[protocol.Operation] {
	l.order.Lock()
	l.detaching = false
	l.order.Unlock()
	return l.unfinished()
}

// awaitDone waits until all lanes have finished with the rounds. It returns false if the timer fires
// before.
func awaitDone(rounds []*quorum.Round[protocol.Operation], timer clock.Timer) bool {
	for _, round := range rounds {
		done := make(chan struct{})
		round.AfterDone(func() { close(done) })
		select {
		case <-done:
		case <-timer.C():
			return false
		}
	}
	return true
}

// handle returns the text of the lock.
//
// The text says for how long keys may live as a duration from now, not as a time: the clocks of two
// processes need not agree. Resume counts it from its own beginning, which is later, so it is never
// too short.
func (l *Lock) handle() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := handle.Handle{
		Prefix: l.r.cfg.KeyPrefix, Key: l.key, Value: l.value, Token: l.FencingToken(),
		TTL: l.ttl, Left: l.keysUntil.Sub(l.r.cfg.Clock.Now()),
	}.Encode()
	if err != nil {
		return "", fmt.Errorf("redlock: detach %q: the key with Config.KeyPrefix %w", errs.Short(l.key), err)
	}
	return text, nil
}

// givenUp returns how the lock was given up: ErrDetached or ErrReleased.
func (l *Lock) givenUp() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == ErrDetached {
		return ErrDetached
	}
	return ErrReleased
}

// finished forgets a round that all lanes have finished with.
func (l *Lock) finished(round *quorum.Round[protocol.Operation]) {
	l.order.Lock()
	defer l.order.Unlock()
	if i := slices.Index(l.underWay, round); i >= 0 {
		l.underWay = slices.Delete(l.underWay, i, i+1)
	}
}
