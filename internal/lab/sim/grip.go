package sim

import (
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// grips returns the times at which another server is about to take over the fault's node,
// or the same one without its memory. A lock that a third node lacks then shows whether the
// server's vote counts.
func (f FaultPlan) grips() []time.Duration {
	switch f.Kind {
	case EmptyPromotion, Spare, LateInfo:
		return []time.Duration{f.At}
	case Excursion:
		return []time.Duration{f.At, f.At + f.For}
	case Deposed, DeposedLong: // when the old master grants its last lock
		return []time.Duration{f.At + f.For}
	}
	return nil
}

// stays reports whether a client stays connected to the master that a fault deposes.
func (p Plan) stays(f FaultPlan, client int) bool {
	return stream(p.Config.Seed, "deposed", f.Server, client).IntN(2) == 0
}

// gripFor is how long before such a time the holder asks for its lock.
const gripFor = 100 * time.Millisecond

// grip makes a client take a lock right before such a time, and keep it. The third node
// does not get the key, as it refuses all clients that there are then.
func (w *world) grip(number int, f FaultPlan, at time.Duration) {
	r := stream(w.plan.Config.Seed, "grip", number, int(at))
	time.Sleep(at - gripFor - w.now())
	var old []*client
	for _, c := range w.clients {
		if plan := w.plan.Clients[c.index]; plan.From < at-gripFor && plan.stays() && !w.plan.pauses(c.index) {
			old = append(old, c)
		}
	}
	deposed := f.Kind == Deposed || f.Kind == DeposedLong
	holders := slices.DeleteFunc(slices.Clone(old), func(c *client) bool { return deposed && !w.plan.stays(f, c.index) })
	if len(holders) == 0 || f.Third < 0 || r.IntN(4) == 0 {
		return
	}
	holder := pick(r, holders...)
	refuse := func(n int, hits func(*client) bool) {
		for _, c := range slices.DeleteFunc(slices.Clone(old), func(c *client) bool { return !hits(c) }) {
			p := c.paths[f.Third]
			p.set(func(p *path) { p.refused += n })
			if n > 0 {
				p.Break()
			}
			time.Sleep(time.Microsecond)
		}
	}
	refuse(1, func(*client) bool { return true })
	until := at + between(r, 1, 200*time.Millisecond)
	if f.Kind == LateInfo {
		until = at + f.For
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		time.Sleep(until - w.now())
		refuse(-1, func(c *client) bool { return c != holder })
	}()
	if l, op := holder.acquire(r, gripKey, longest, true, time.Second); l != nil {
		var others sync.WaitGroup
		for _, c := range w.clients {
			if plan := w.plan.Clients[c.index]; c != holder && plan.From < at+f.For+newcomesIn && plan.stays() {
				others.Go(func() { w.pry(c, f, at, number) })
			}
		}
		holder.sleep(l.Context(), longest)
		holder.release(background, l, op)
		others.Wait()
	}
	<-over
	refuse(-1, func(c *client) bool { return c == holder }) // the holder last, or its client would put the key there
}

// gripKey is the key of the holder's lock.
const gripKey = "grip"

// pry has a client try to take the holder's key after the takeover.
func (w *world) pry(c *client, f FaultPlan, at time.Duration, number int) {
	r := stream(w.plan.Config.Seed, "pry", number, c.index)
	if f.Kind == LateInfo { // the client asks for the identity while the server is still a master
		time.Sleep(at + between(r, 1, lateBy/2) - w.now())
		if l, op := c.acquire(r, gripKey, longest, false, time.Second); l != nil {
			c.release(background, l, op)
		}
	}
	switch f.Kind {
	case EmptyPromotion, LateInfo:
		at += f.For
	case Deposed, DeposedLong: // when a guard that covers the ttl alone would count the replica's votes
		at = max(at, f.At+longest+100*time.Millisecond)
	}
	at = max(at, w.plan.Clients[c.index].From)
	time.Sleep(at + between(r, 1, 20*time.Millisecond) - w.now())
	for range 3 {
		if l, op := c.acquire(r, gripKey, longest, false, time.Second); l != nil {
			c.sleep(l.Context(), exp(r, 5*time.Millisecond))
			c.release(background, l, op)
		}
		c.sleep(background, exp(r, 30*time.Millisecond))
	}
}

// newcomers adds a new client shortly after each of the first few moves of an address.
func (p *Plan) newcomers() {
	came := 0
	for i, f := range p.Faults {
		if came == maxNewcomers || !slices.Contains([]Kind{EmptyPromotion, Excursion, Spare, Deposed}, f.Kind) {
			continue
		}
		came++
		r := stream(p.Config.Seed, "newcomer", i)
		c := p.Clients[0]
		c.From, c.To, c.Workers, c.Bursts = f.At+between(r, 1, newcomesIn), 0, 1, false
		if f.Kind == EmptyPromotion {
			c.From += f.For
		}
		if slices.Contains(p.Config.Without, i+1) {
			c.From = history.Never
		}
		most := 6 * time.Hour
		if p.Agree {
			most = agreed
		}
		c.Offset = between(r, -most, most)
		p.Clients = append(p.Clients, c)
	}
}

const (
	maxNewcomers = 2
	newcomesIn   = 30 * time.Millisecond // at the latest
)
