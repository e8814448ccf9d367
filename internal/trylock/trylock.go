// Package trylock locks a key unless another client has it, also if many clients try at one instant.
package trylock

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/redlock"
)

// The first pause is random, from 0 to shortest. Each further one may be twice as long. Acquire gives
// up instead of a pause that could be above longest, after 9 attempts and less than 1.3 s of pauses.
const (
	shortest = 5 * time.Millisecond
	longest  = time.Second
)

// Check returns the error with which a Redlock refuses a key or a ttl; nil if it accepts them. The
// limits depend on its configuration. Check asks no node.
func Check(locks *redlock.Redlock, key string, ttl time.Duration) error {
	if locks == nil {
		return errors.New("locks is nil")
	}
	// With a context that has ended TryAcquire checks its arguments and asks no node.
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := locks.TryAcquire(ended, key, ttl); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Locks is the part of a *redlock.Redlock that Acquire needs.
type Locks interface {
	TryAcquire(ctx context.Context, key string, ttl time.Duration) (*redlock.Lock, error)
	Inspect(ctx context.Context, key string) (*redlock.Inspection, error)
}

// Acquire locks key for ttl unless another client has it. It does not wait for another client's
// lock.
//
// Clients that call TryAcquire at one instant may each get a minority of the nodes. Then all of them
// get redlock.ErrHeld, although nobody has the key. So after that error Acquire inspects the key. If
// no majority has one value, and none has a queue of clients that wait for the key, Acquire pauses for
// a random time and makes another attempt. It makes up to 9 attempts, and their pauses together take
// less than 1.3 s.
//
// The errors are those of TryAcquire. redlock.ErrHeld means that a majority of the nodes has another
// client's value or a queue of others, or, after the last attempt, that no inspection has found such a majority. It also
// means that so many nodes have a key which is no lock that nobody can get it. If ctx ends after an
// attempt, the error matches the reason of the last complete attempt and ctx's cause. Every other
// error comes at once. After an error no key stays on any node that answers.
func Acquire(ctx context.Context, locks Locks, key string, ttl time.Duration) (*redlock.Lock, error) {
	var held *redlock.QuorumError // of the last attempt; nil before the first
	for pause := shortest; ; pause *= 2 {
		lock, err := locks.TryAcquire(ctx, key, ttl)
		switch {
		case held != nil && err != nil && ctx.Err() != nil && !complete(err):
			return nil, ended(ctx, held)
		case !errors.Is(err, redlock.ErrHeld) || !errors.As(err, &held) || pause > longest:
			return lock, err
		}
		seen, err := locks.Inspect(ctx, key)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ended(ctx, held)
		case err != nil:
			return nil, err
		case seen.Verdict() == redlock.VerdictHeld, seen.Verdict() == redlock.VerdictForeign, awaited(seen):
			return nil, held
		}
		timer := time.NewTimer(rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ended(ctx, held)
		}
	}
}

// awaited reports whether a majority has a queue for the key: one of those who wait gets it.
func awaited(seen *redlock.Inspection) bool {
	nodes := 0
	for _, n := range seen.Nodes {
		if n.Waiting > 0 {
			nodes++
		}
	}
	return nodes >= seen.Need
}

// complete reports whether err is of an attempt that the nodes' answers have decided.
func complete(err error) bool {
	var failed *redlock.QuorumError
	return errors.As(err, &failed) && failed.Reason != nil
}

// ended returns the error of an Acquire whose context has ended after an attempt that failed with
// held.
func ended(ctx context.Context, held *redlock.QuorumError) error {
	err := *held
	err.Cause = context.Cause(ctx)
	return &err
}
