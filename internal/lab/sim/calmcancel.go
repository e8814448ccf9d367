package sim

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/redlock/redlock"
)

var errGaveUp = errors.New("gave up")

// calmCancel has callers give up at any moment, while nothing fails and nobody else wants
// the key. The error must then be the cause of the caller's context, and never say that
// nodes have failed or that somebody has the key: only a complete attempt can find that.
func (w *world) calmCancel(c *client, key string, want func(what string, ok bool, got any)) {
	r := stream(w.plan.Config.Seed, "calm cancel", c.index)
	calls := map[string]func(ctx context.Context) (*redlock.Lock, error){
		"acquisition": func(ctx context.Context) (*redlock.Lock, error) { return c.lock.Acquire(ctx, key, longest) },
		"attempt":     func(ctx context.Context) (*redlock.Lock, error) { return c.lock.TryAcquire(ctx, key, longest) },
		"extension": func(ctx context.Context) (*redlock.Lock, error) {
			l, err := c.lock.Acquire(background, key, longest)
			if err != nil {
				return nil, err
			}
			return l, l.Extend(ctx, longest)
		},
	}
	for _, what := range []string{"acquisition", "attempt", "extension", "acquisition", "attempt", "extension"} {
		ctx, cancel := context.WithCancelCause(background)
		stop := time.AfterFunc(between(r, 1, 6*time.Millisecond), func() { cancel(errGaveUp) })
		l, err := calls[what](ctx)
		ended := ctx.Err() != nil
		stop.Stop()
		cancel(nil)
		if l != nil {
			w.must(l.Release(background))
		}
		if err == nil {
			continue
		}
		if !ended {
			want("got an error in an "+what+" that nothing disturbed", false, err)
			continue
		}
		want("is not told by its "+what+" why it gave up", errors.Is(err, errGaveUp), err)
		want("is told by an "+what+" that it gave up that nodes have failed", !errors.Is(err, redlock.ErrNoQuorum), err)
		want("is told by an "+what+" that it gave up that somebody has the key", !errors.Is(err, redlock.ErrHeld), err)
	}
}
