//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/redlock"
)

// hold is one acquisition of a client, and the lock that it got.
type hold struct {
	*client
	key  string
	ttl  time.Duration
	op   int
	lock *redlock.Lock
}

// tell records what has just happened or is about to happen.
func (h *hold) tell(kind history.Kind, until time.Duration, err error) {
	e := history.Event{At: h.clock.now(), Kind: kind, Client: h.config.Client, Op: h.op, Key: h.key, Until: until}
	if h.lock != nil {
		e.Token = h.lock.FencingToken()
	}
	if err != nil {
		e.Err = err.Error()
	}
	h.add(e)
}

func (h *hold) until() time.Duration { return h.trueTime(h.lock.Until()) }

// trueTime returns the instant at which the client's clock shows t.
func (h *hold) trueTime(t time.Time) time.Duration { return h.clock.of(t.Add(-h.config.Ahead)) }

// use does one of the things that a holder may do. Most are brief, so that much happens.
func (h *hold) use(ctx context.Context, dice *rand.Rand) {
	switch draw := dice.IntN(100); {
	case draw < 83:
		h.wait(ctx, upTo(dice, 4*time.Millisecond))
	case draw < 92:
		// A long hold makes it likely that a fault comes between two steps.
		step, long := h.ttl/12, dice.IntN(3) == 0
		if long {
			step = h.ttl / 2
		}
		for range 1 + dice.IntN(3) {
			h.wait(ctx, upTo(dice, step))
			h.extend(ctx, shortestTTL+upTo(dice, longestTTL-shortestTTL))
		}
		if long {
			h.overstay(ctx, dice)
		}
	case draw < 95:
		h.keepAlive(ctx, h.ttl/3+upTo(dice, h.ttl))
	case draw < 98:
		h.overstay(ctx, dice)
	default:
		return // abandons the lock
	}
	h.release()
}

// overstay waits until the lock ends and the next holder may come. A client that believes in
// its lock for longer than the masters do is detected by that.
func (h *hold) overstay(ctx context.Context, dice *rand.Rand) {
	<-h.lock.Context().Done()
	wait(ctx, upTo(dice, h.ttl/2))
}

// wait holds the lock for d, or until the lock or the storm ends.
func (h *hold) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.lock.Context().Done():
	case <-ctx.Done():
	}
}

func (h *hold) extend(ctx context.Context, ttl time.Duration) {
	h.tell(history.Extending, 0, nil)
	if err := h.lock.Extend(ctx, ttl); err != nil {
		h.tell(history.NotExtended, 0, err)
		return
	}
	h.tell(history.Extended, h.until(), nil)
}

// keepAlive holds the lock for d and renews it meanwhile. It checks often, because only these
// records show for how long a client that is killed could believe in its lock.
func (h *hold) keepAlive(ctx context.Context, d time.Duration) {
	h.lock.KeepAlive()
	end := time.NewTimer(d)
	defer end.Stop()
	look := time.NewTicker(h.ttl / 8)
	defer look.Stop()
	last := h.lock.Until()
	for {
		select {
		case <-look.C:
			if until := h.lock.Until(); until.After(last) {
				last = until
				h.tell(history.Renewed, h.trueTime(until), nil)
			}
		case <-end.C:
			return
		case <-h.lock.Context().Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

func (h *hold) release() {
	h.tell(history.Releasing, h.until(), nil)
	h.tell(history.Released, 0, h.lock.Release(context.Background()))
}
