package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/quorumlock/redlock/redlock"
)

// Observe yields the present leader, and then the changes that it sees, until ctx ends or the loop
// breaks:
//
//	for leader, err := range leaders.Observe(ctx) {
//		…
//	}
//
// Each pair is one change, with a Leader or with an error of Election.Leader: ErrNoLeader while
// nobody leads, redlock.ErrNoQuorum while too few nodes answer. A new term is a change even if its
// Owner is the same, as its Holder differs. An error that stays is not repeated. When it is over, the
// leader is yielded again. The end of ctx ends the loop without another pair. The error of a wrong
// argument and redlock.ErrClosed do not go away, so each of them is yielded once and ends the loop.
//
// An observer asks the nodes. While there is a leader it pauses for a whole ttl between two looks,
// so a change can be seen a ttl late, and a term that lasts for less can be missed. While there is
// none, and after an error, it pauses for a tenth of the ttl, but for at least 10 ms and at most a
// second. Each loop looks for itself; one that takes long between two pairs looks less often.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := e.check(ctx); err != nil {
			yield(Leader{}, err)
			return
		}
		var last state
		for {
			leader, err := e.Leader(ctx)
			if ctx.Err() != nil {
				return
			}
			if now := stateOf(leader, err); now != last {
				last = now
				if !yield(leader, err) {
					return
				}
			}
			if errors.Is(err, redlock.ErrClosed) || !pause(ctx, e.untilNextLook(err)) {
				return
			}
		}
	}
}

// state is what an observer compares: two looks with the same state show no change. The zero state
// is that before the first look.
type state struct {
	holder string // of the leader; "" without one
	reason string // why there is no leader to show; "" with one
}

// stateOf returns the state that a look has found. Two errors with one reason are the same state,
// whatever nodes they name.
func stateOf(leader Leader, err error) state {
	if err == nil {
		return state{holder: leader.Holder}
	}
	for _, reason := range []error{ErrNoLeader, redlock.ErrNoQuorum, redlock.ErrForeign} {
		if errors.Is(err, reason) {
			err = reason
			break
		}
	}
	return state{reason: err.Error()}
}

// Pauses of an observer without a leader.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = time.Second
)

// untilNextLook returns the pause after a look that ended with err.
func (e *Election) untilNextLook(err error) time.Duration {
	if err == nil {
		return e.ttl
	}
	return min(max(e.ttl/10, shortestPause), longestPause)
}

// pause waits for d, and reports whether ctx has not ended by then.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
