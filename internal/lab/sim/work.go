package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/redlock"
)

// work is a goroutine of a client, which takes locks until the faults are over. It waits
// for them or only tries, may give up, holds them for less or more than their validity,
// renews, extends and releases them, and forgets some.
func (w *world) work(c *client, worker int) {
	plan := w.plan.Clients[c.index]
	r := stream(w.plan.Config.Seed, "worker", c.index, worker)
	for w.now() < w.plan.For && !c.gone() {
		c.sleep(background, exp(r, 20*time.Millisecond))
		for left := w.resting(); left > 0 && !c.gone(); left = w.resting() {
			c.sleep(background, left+exp(r, 2*time.Millisecond))
		}
		if c.takeParcel(r) {
			continue
		}
		if plan.Bursts && r.IntN(5) == 0 {
			c.burst(r, plan.TTLs)
			continue
		}
		key := keyName(r.IntN(w.plan.Keys))
		if r.IntN(6) == 0 && !w.plan.pauses(c.index) {
			if w.plan.Ways && r.IntN(2) == 0 {
				c.lead(r, key, pick(r, plan.TTLs...))
			} else {
				c.do(r, key, pick(r, plan.TTLs...))
			}
			continue
		}
		patience := time.Second
		if w.plan.Crowd {
			patience *= 3
		}
		l, op := c.acquire(r, key, pick(r, plan.TTLs...), r.IntN(2) == 0 || w.plan.Crowd, patience)
		if l != nil {
			c.hold(r, l, op, plan.TTLs)
		}
	}
}

func keyName(i int) string { return fmt.Sprintf("k%d", 1+i) }

// exp draws a random time of mean d that is never 0.
func exp(r *rand.Rand, d time.Duration) time.Duration {
	return time.Microsecond + time.Duration(r.ExpFloat64()*float64(d)) + between(r, 1, 1000)
}

// acquire asks for a lock, and may give up, on average after patience.
func (c *client) acquire(r *rand.Rand, key string, ttl time.Duration, wait bool, patience time.Duration) (*redlock.Lock, int) {
	patience = exp(r, patience)
	if slices.Contains(c.w.plan.Kinds, Cancel) && r.IntN(3) == 0 {
		patience = exp(r, 5*time.Millisecond)
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	defer c.clock.AfterFunc(patience, cancel).Stop()
	ask := c.lock.TryAcquire
	if wait {
		ask = c.lock.Acquire
	}
	op := c.begin(key, wait)
	began := c.w.now()
	l, err := ask(ctx, key, ttl)
	if !wait {
		patience = 0
	}
	// One round, and the clean-up after the nodes that answered and after those that did
	// not.
	rounds := 3
	if c.w.plan.Fencing {
		rounds += 3 // for proposals above fences that it did not know
	}
	c.w.prompt(c, "acquisition", op, key, began, rounds, patience)
	if gaveUp := errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrNoQuorum); wait && gaveUp && !errors.Is(err, context.Canceled) && !c.gone() {
		c.w.report(history.Violation{
			At: c.w.now(), Rule: Told, Key: key,
			Text: fmt.Sprintf("client %d's #%d waited until its caller gave up, and is not told so: %v", c.index+1, op, err),
		})
	}
	if err != nil {
		c.say(history.Denied, op, key, 0, err)
		c.gate()
		return nil, 0
	}
	c.granted(op, l)
	c.gate()
	return l, op
}

// do holds a lock through Do, which hands out no Lock: the function believes that it holds
// the lock until its context is done. A client that a fault pauses does not use do, as it
// could not notice that.
func (c *client) do(r *rand.Rand, key string, ttl time.Duration) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	defer c.clock.AfterFunc(exp(r, time.Second), cancel).Stop()
	op := c.begin(key, true)
	ran, lost := false, error(nil)
	err := c.lock.Do(ctx, key, ttl, func(ctx context.Context) error {
		ran = true
		c.say(history.Granted, op, key, c.w.now()+1, nil)
		c.inDo(op, key)
		defer c.inDo(op, "")
		c.sleep(ctx, exp(r, 2*min(ttl, longest)))
		if cause := context.Cause(ctx); errors.Is(cause, redlock.ErrNotHeld) || errors.Is(cause, redlock.ErrExpired) {
			lost = cause
		}
		c.say(history.Ended, op, key, c.w.now(), lost)
		c.say(history.Releasing, op, key, c.w.now(), nil)
		return nil
	})
	if !ran {
		c.say(history.Denied, op, key, 0, err)
		return
	}
	c.say(history.Released, op, key, 0, err)
	if lost != nil && err == nil && !c.gone() {
		c.w.report(history.Violation{
			At: c.w.now(), Rule: Loss, Key: key,
			Text: fmt.Sprintf("client %d's Do #%d returned nil after a loss: %v", c.index+1, op, lost),
		})
	}
}

// inDo records that a Do runs or, with an empty key, that it is over.
func (c *client) inDo(op int, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.does[op] = key; key == "" {
		delete(c.does, op)
	}
}

// waits is the event text of an acquisition that waits for its lock.
const waits = "waits"

// begin numbers and logs an acquisition.
func (c *client) begin(key string, wait bool) (op int) {
	if wait {
		return c.beginBy(key, waits)
	}
	return c.beginBy(key, "")
}

// beginBy is begin with the event's text.
func (c *client) beginBy(key, text string) (op int) {
	c.mu.Lock()
	c.ops++
	op = c.ops
	c.mu.Unlock()
	c.log(history.Event{Kind: history.Asked, Op: op, Key: key, Text: text}, nil)
	return op
}

// drop records that a lock is not held any more.
func (c *client) drop(op int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, op)
}

func (c *client) granted(op int, l *redlock.Lock) {
	c.w.own(l.Value(), c.index, op)
	c.grantedBy("", op, l)
}

// grantedBy is granted for a lock whose value has an owner. how is the event's text.
func (c *client) grantedBy(how string, op int, l *redlock.Lock) {
	c.log(history.Event{Kind: history.Granted, Op: op, Key: l.Key(), Until: c.until(l), Token: l.FencingToken(), Text: how}, nil)
	if c.gone() {
		return
	}
	if fenced := l.FencingToken() != 0; fenced != c.w.plan.Fencing {
		c.w.report(history.Violation{At: c.w.now(), Rule: history.Fencing, Key: l.Key(), Text: fmt.Sprintf("client %d's lock #%d has token %d", c.index+1, op, l.FencingToken())})
	}
	c.mu.Lock()
	c.held[op] = l
	c.mu.Unlock()
	c.w.cover(c, op, l)
	ctx := l.Context()
	context.AfterFunc(ctx, func() {
		c.drop(op)
		c.sayOf(history.Ended, op, l, context.Cause(ctx))
	})
}

// hold does what holders do, good ones and bad ones.
func (c *client) hold(r *rand.Rand, l *redlock.Lock, op int, ttls []time.Duration) {
	ttl := pick(r, ttls...)
	stay := min(ttl, longest)
	for range r.IntN(3) {
		switch r.IntN(4) {
		case 0:
			l.KeepAlive()
		case 1:
			c.extend(r, l, op, ttl)
		case 2:
			c.nest(r, l, op, ttl)
		}
		// A good holder stops when the lock's context is done.
		c.sleep(l.Context(), exp(r, stay/2))
	}
	switch r.IntN(8) {
	case 0: // sleeps on, and notices nothing
		c.sleep(background, exp(r, stay))
	case 1: // forgets the lock, which must end by itself
		if c.w.plan.Long {
			break // that would take a while
		}
		if c.sleep(l.Context(), c.clock.until(l.Until())+time.Millisecond); l.Context().Err() != nil {
			return
		}
	}
	if c.giveUpOtherwise(r, l, op) {
		return
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if r.IntN(4) == 0 {
		cancel() // the lock must be released all the same
	}
	c.release(ctx, l, op)
}

func (c *client) extend(r *rand.Rand, l *redlock.Lock, op int, ttl time.Duration) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if slices.Contains(c.w.plan.Kinds, Cancel) && r.IntN(3) == 0 {
		defer c.clock.AfterFunc(exp(r, 5*time.Millisecond), cancel).Stop()
	}
	c.say(history.Extending, op, l.Key(), 0, nil)
	began := c.w.now()
	err := l.Extend(ctx, ttl)
	c.w.prompt(c, "extension", op, l.Key(), began, 1, 0)
	if err != nil {
		c.say(history.NotExtended, op, l.Key(), 0, err)
	} else {
		c.sayOf(history.Extended, op, l, nil)
		c.w.cover(c, op, l)
	}
	c.gate()
}

func (c *client) release(ctx context.Context, l *redlock.Lock, op int) {
	c.drop(op)
	c.sayOf(history.Releasing, op, l, nil)
	began := c.w.now()
	err := l.Release(ctx)
	c.w.prompt(c, "release", op, l.Key(), began, 1, 0)
	c.say(history.Released, op, l.Key(), 0, err)
	c.gate()
}
