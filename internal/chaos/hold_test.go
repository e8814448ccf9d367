//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/redlock/internal/history"
	"github.com/quorumlock/redlock/redlock"
)

// hold is one acquisition of a client, and the lock that came of it.
type hold struct {
	*client
	key  string
	ttl  time.Duration
	op   int
	lock *redlock.Lock
}

// tell writes down what has just happened or is about to.
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

// trueTime is when the client's clock shows t.
func (h *hold) trueTime(t time.Time) time.Duration { return h.clock.of(t.Add(-h.config.Ahead)) }

// use does one of the things that a holder may do. Most are brief, or little would
// happen.
func (h *hold) use(ctx context.Context, dice *rand.Rand) {
	switch draw := dice.IntN(100); {
	case draw < 83:
		h.wait(ctx, upTo(dice, 4*time.Millisecond))
	case draw < 92:
		// Those that hold for long find that a fault has come between.
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
		return // abandons
	}
	h.release()
}

// overstay waits for the lock to end, and for the next holder to come. Whoever took
// the lock for longer than the masters did is found out by that.
func (h *hold) overstay(ctx context.Context, dice *rand.Rand) {
	<-h.lock.Context().Done()
	wait(ctx, upTo(dice, h.ttl/2))
}

// wait holds the lock for d: it heeds its end, and that of the storm.
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

// keepAlive holds the lock for d and has it renewed meanwhile. It looks often: of a
// client that is killed nothing else tells for how long it could believe in it.
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
