package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// lead stands for an election whose name is one of the keys that all contend for, so Exclusion finds
// two leaders at one time. Each call of the function is a term: it believes that it leads until it
// returns. A client that a fault pauses does not use lead, as its function could not notice a loss.
//
// If its caller's context ends, the function works on for a while. The term must not be released
// before it returns (client-go#728).
func (c *client) lead(r *rand.Rand, key string, ttl time.Duration) {
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	resigned := errors.New("resigned")
	defer c.clock.AfterFunc(exp(r, time.Second), func() { cancel(resigned) }).Stop()
	wrong := func(format string, args ...any) {
		if !c.gone() {
			c.w.report(history.Violation{At: c.w.now(), Rule: Loss, Key: key, Text: fmt.Sprintf("client %d's election: ", c.index+1) + fmt.Sprintf(format, args...)})
		}
	}
	e := election.New(c.lock, key, ttl)
	terms := 0
	var lost error // in the last term
	err := e.Lead(ctx, func(during context.Context) error {
		terms++
		op := c.begin(key, false)
		c.say(history.Granted, op, key, c.w.now()+1, nil)
		c.inDo(op, key)
		defer c.inDo(op, "")
		term, live := redlock.FromContext(during, key)
		if during.Err() == nil {
			if err := e.IsLeader(during); err != nil && during.Err() == nil {
				wrong("leads, and is told: %v", err)
			}
		}
		c.sleep(during, exp(r, min(ttl, longest)))
		cause := context.Cause(during)
		if errors.Is(cause, resigned) && live {
			// Until the lock is lost, which the context no longer tells.
			c.sleep(term.Context(), exp(r, 10*time.Millisecond))
			if cause = context.Cause(term.Context()); errors.Is(cause, redlock.ErrReleased) {
				wrong("its term was released while it led")
			}
		}
		lost = nil
		if errors.Is(cause, redlock.ErrNotHeld) || errors.Is(cause, redlock.ErrExpired) {
			lost = cause
		}
		if err := e.IsLeader(background); lost != nil && err == nil {
			wrong("has lost its term by %v, and IsLeader does not say so", lost)
		}
		c.say(history.Ended, op, key, c.w.now(), lost)
		c.say(history.Releasing, op, key, c.w.now(), nil) // Lead does not say what came of it
		return nil
	})
	switch {
	case c.gone():
	case err == nil && terms == 0:
		wrong("Lead has returned nil, and nobody led")
	case err == nil && lost != nil:
		wrong("Lead has returned nil after a loss: %v", lost)
	case err != nil && !errors.Is(err, resigned) && !errors.Is(err, redlock.ErrClosed) && !errors.Is(err, redlock.ErrDuplicateNode):
		wrong("Lead has ended: %v", err)
	}
}
