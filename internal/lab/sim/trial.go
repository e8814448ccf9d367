package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/redlock"
)

// The keys that the clients of a trial contend for: in the trial itself, before it as the
// control, and once more when nobody is sick any more.
const (
	trialKey   = "trial"
	controlKey = trialKey + " control"
	healedKey  = trialKey + " healed"
)

// part is one of the two parts of a trial.
type part struct {
	key      string
	from, to time.Duration
}

// trial has its clients contend for a key, first without what ails some of them and then
// with it. After that each client takes one more key, and no queue may be left.
func (w *world) trial() {
	t := w.plan.Trial
	if t == nil {
		return
	}
	clients := w.clients[t.First:]
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(func() { w.settle(c) })
	}
	all.Wait()
	if t.Down >= 0 {
		w.cutOff(clients, t.Down, true, 1)
	}
	w.parts[0] = w.contend(controlKey, clients[:t.Well], nil)
	time.Sleep(settled)
	w.parts[1] = w.contend(trialKey, clients[:t.Well], clients[t.Well:])
	if t.Down >= 0 {
		w.cutOff(clients, t.Down, true, -1)
	}
	time.Sleep(settled)
	for _, c := range clients {
		all.Go(func() {
			w.waitInLine(c, stream(w.plan.Config.Seed, "healed", c.index), healedKey, longest, linePatience(len(clients)))
		})
	}
	all.Wait()
	time.Sleep(queueLife)
	w.noQueues("a trial")
}

// contend runs one part of the trial: the control if sick is empty.
func (w *world) contend(key string, well, sick []*client) part {
	t := w.plan.Trial
	now := w.now()
	p := part{key, now, now + t.For}
	what := "the control of a trial: "
	if len(sick) > 0 {
		what = "a trial: "
	}
	w.add(history.Event{At: now, Kind: history.Fault, Until: p.to, Text: what + t.String()})
	end := w.ail(sick)
	var all sync.WaitGroup
	for _, c := range well {
		r := stream(w.plan.Config.Seed, key, c.index)
		if t.Kind == Foreign && len(sick) == 0 {
			// Beside foreign clients the control is a client that polls.
			continue
		}
		all.Go(func() { w.contender(c, r, p) })
	}
	switch t.Kind {
	case Foreign:
		foreigners := sick
		if len(sick) == 0 {
			foreigners = w.clients[t.First+t.Well:]
			for _, c := range well {
				all.Go(func() { w.poller(c, stream(w.plan.Config.Seed, key, c.index), p) })
			}
		}
		for _, c := range foreigners {
			all.Go(func() { w.foreigner(c, stream(w.plan.Config.Seed, key, c.index), p) })
		}
	case Frozen:
		if len(sick) > 0 {
			all.Go(func() { w.freeze(sick, p) })
		}
		fallthrough
	default:
		for _, c := range sick {
			all.Go(func() { w.contender(c, stream(w.plan.Config.Seed, key, c.index), p) })
		}
	}
	all.Wait()
	end()
	return p
}

// ail disturbs the network of the sick, and returns a function that ends that.
func (w *world) ail(sick []*client) (end func()) {
	t := w.plan.Trial
	if len(sick) == 0 {
		return func() {}
	}
	switch t.Kind {
	case SlowLink:
		far := func(d time.Duration) {
			for _, c := range sick {
				for _, p := range c.paths {
					p.set(func(p *path) { p.far += d })
				}
			}
		}
		far(t.Link)
		return func() { far(-t.Link) }
	case Minority, HalfCutOff:
		off := func(n int) {
			for _, c := range sick {
				r := stream(w.plan.Config.Seed, "reach", c.index)
				reached := 0
				for _, node := range r.Perm(w.plan.Nodes) {
					if node != t.Down && reached < t.Reach {
						reached++
						continue
					}
					w.cutOff([]*client{c}, node, t.Refused, n)
				}
			}
		}
		off(1)
		return func() { off(-1) }
	}
	return func() {}
}

// cutOff cuts clients off from a node (n is 1), or lets them reach it again (n is -1).
func (w *world) cutOff(clients []*client, node int, refused bool, n int) {
	for _, c := range clients {
		time.Sleep(time.Microsecond)
		p := c.paths[node]
		if !refused {
			p.set(func(p *path) { p.held[faultlink.ToServer] += n; p.held[faultlink.ToClient] += n })
			continue
		}
		p.set(func(p *path) { p.refused += n })
		if n > 0 {
			p.Break()
		}
	}
}

// until returns a context that ends with the part. The contexts of several clients end one
// after the other, so that a run can be repeated.
func (w *world) until(p part, c *client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(background)
	stop := time.AfterFunc(p.to-w.now()+time.Duration(c.index)*time.Microsecond, cancel)
	return ctx, func() { stop.Stop(); cancel() }
}

// contender takes the key again and again, until the part is over.
func (w *world) contender(c *client, r *rand.Rand, p part) {
	w.turns(c, r, p, func(ctx context.Context) (*redlock.Lock, int) {
		op := c.begin(p.key, true)
		return c.got(op, p.key)(c.lock.Acquire(ctx, p.key, longest))
	})
}

// poller does the same without a queue: it tries, and tries again after a pause.
func (w *world) poller(c *client, r *rand.Rand, p part) {
	w.turns(c, r, p, func(ctx context.Context) (*redlock.Lock, int) {
		for ctx.Err() == nil {
			op := c.begin(p.key, false)
			if l, op := c.got(op, p.key)(c.lock.TryAcquire(ctx, p.key, longest)); l != nil {
				return l, op
			}
			c.sleep(ctx, pollPause(r))
		}
		return nil, 0
	})
}

// pollPause draws the pause of a client that polls, as most libraries choose it.
func pollPause(r *rand.Rand) time.Duration {
	return between(r, 50*time.Millisecond, 250*time.Millisecond)
}

func (w *world) turns(c *client, r *rand.Rand, p part, take func(ctx context.Context) (*redlock.Lock, int)) {
	t := w.plan.Trial
	ctx, cancel := w.until(p, c)
	defer cancel()
	for ctx.Err() == nil {
		think, hold := exp(r, t.Think), exp(r, t.Hold)
		if t.Kind == Foreign {
			think, hold = beside(r), beside(r)
		}
		if c.sleep(ctx, think); ctx.Err() != nil {
			return
		}
		if l, op := take(ctx); l != nil {
			c.sleep(l.Context(), hold)
			c.release(background, l, op)
		}
	}
}

// beside draws how long a client of this library holds the key beside foreign clients, and
// how long it waits before it asks again.
func beside(r *rand.Rand) time.Duration {
	return between(r, 250*time.Millisecond, 350*time.Millisecond)
}

// got logs the outcome of an acquisition.
func (c *client) got(op int, key string) func(l *redlock.Lock, err error) (*redlock.Lock, int) {
	return func(l *redlock.Lock, err error) (*redlock.Lock, int) {
		if err != nil {
			c.say(history.Denied, op, key, 0, err)
			if !errors.Is(err, context.Canceled) && !errors.Is(err, redlock.ErrHeld) && !errors.Is(err, redlock.ErrNoQuorum) {
				c.w.must(fmt.Errorf("client %d's #%d: %w", c.index+1, op, err))
			}
			c.gate()
			return nil, 0
		}
		c.granted(op, l)
		c.gate()
		return l, op
	}
}

// mute holds what the client sends (by is 1), or lets it pass (by is -1). Deadlines of
// go-redis run by the lab's clock even while the client stands still. So the client would
// take a silent subscription for broken and try to take the key, as no frozen process does.
func (c *client) mute(by int) {
	for _, p := range c.paths {
		p.set(func(p *path) { p.held[faultlink.ToServer] += by })
	}
}

// freeze makes all the sick stand still at nearly one instant, and go on after a while,
// again and again.
func (w *world) freeze(sick []*client, p part) {
	r := stream(w.plan.Config.Seed, "freeze")
	for {
		time.Sleep(between(r, 2*time.Second, 4*time.Second))
		stay := between(r, 15*time.Second, 20*time.Second)
		if w.now()+stay+time.Second > p.to {
			return
		}
		for _, c := range sick {
			time.Sleep(between(r, 1, 3*time.Millisecond))
			c.pause()
			c.mute(1)
		}
		time.Sleep(stay)
		for _, c := range sick {
			c.mute(-1)
			c.resume()
		}
	}
}
