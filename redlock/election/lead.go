package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/redlock"
)

// Lead campaigns, and runs fn while this process leads. If the term is lost, Lead waits until fn has
// returned, campaigns again, and runs fn again.
//
// fn's context ends when the term is lost, or when ctx ends, and its cause says which; fn must then
// stop. It has ctx's values and deadline, and carries the term: redlock.FromContext returns it, for
// its fencing token. fn must not release the term, because Lead does, and only after fn has
// returned, even if fn panics or calls runtime.Goexit. Redlock.Close is the exception: it releases
// all locks at once, so end ctx and let Lead return first.
//
// Lead returns:
//
//   - what fn returned, nil or not, if the term was not lost until then.
//   - the error of Campaign, if the campaign failed: it matches ctx's cause if ctx has ended, and
//     redlock.ErrClosed after Close.
//
// After a loss, what fn returned does not count: fn may have worked without protection for a part
// of its time, so Lead runs it again when this process leads again. Another process may lead, and run
// its fn, before that. So fn's work must be fit to be done twice, or fn must guard its writes by the
// token (package fence) and record them. A loss that only the release reveals counts as well.
//
// If ctx ends while fn runs, fn still decides: a fn that returns nil then ends Lead with nil. If too
// few nodes confirm the release of a term that was not lost, Lead does not return an error for that:
// fn has ended under its lock. The next leader may then have to wait for the ttl.
//
// A fn that ignores its context holds Lead up. Another process may lead meanwhile, but no second fn
// runs beside it in this one: calls of Lead on one Election run one after the other. If fn calls Lead
// with its context, the call does not wait: it returns redlock.ErrReentrant or, with
// redlock.Config.Reentrant, leads in a nested term (see Campaign). If fn calls Lead with a context
// that does not come from its own, the two calls wait for each other.
func (e *Election) Lead(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	if fn == nil {
		return errors.New("election: fn is nil")
	}
	// A call inside a term must not wait for the call around it.
	if ctx.Value(fnOf{e}) == nil {
		select {
		case e.leading <- struct{}{}:
			defer func() { <-e.leading }()
		case <-ctx.Done():
			return fmt.Errorf("election: lead %q: %w", e.name, context.Cause(ctx))
		}
	}
	for {
		if lost, err := e.serve(ctx, fn); !lost {
			return err
		}
	}
}

// serve campaigns and runs fn for one term. lost reports that the term did not last until fn had
// returned. Otherwise err is fn's error, or the campaign's.
func (e *Election) serve(ctx context.Context, fn func(ctx context.Context) error) (lost bool, err error) {
	_, nested := redlock.FromContext(ctx, e.name)
	term, err := e.Campaign(ctx)
	if err != nil {
		return false, err
	}
	// fn's context is a child of the term's, so it ends in the same step. It ends with ctx on a
	// goroutine of its own, a little later, which does no harm.
	during, cancel := context.WithCancelCause(term.Context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	// Deferred, so that a panic or a Goexit in fn also ends the term, and then goes on.
	defer func() {
		released := term.Release(ctx)
		stop()
		cancel(nil)
		lost = errors.Is(released, redlock.ErrNotHeld) || errors.Is(released, redlock.ErrExpired) || errors.Is(released, redlock.ErrClosed)
		if nested && !lost && released != nil && err == nil {
			err = fmt.Errorf("election: lead %q: the term around it has ended: %w", e.name, released)
		}
	}()
	return false, fn(termContext{during, ctx, e})
}

// termContext is a context that ends with a term, and has the deadline of the context of Lead.
type termContext struct {
	context.Context
	lead     context.Context
	election *Election
}

// fnOf is the key under which the context of an Election's function has a value.
type fnOf struct{ *Election }

func (c termContext) Value(key any) any {
	if key == (fnOf{c.election}) {
		return c.election
	}
	return c.Context.Value(key)
}

func (c termContext) Deadline() (time.Time, bool) { return c.lead.Deadline() }
