package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

// All clients wait for lineKey at once when nothing fails any more, and for troubledKey
// while only the waiting itself is disturbed.
const lineKey = "line"

func troubledKey(i int) string { return fmt.Sprintf("line%d", 1+i) }

// trouble is something that happens to waiters although nodes and network are well.
type trouble struct {
	name  string
	begin func(w *world, first *client)
	end   func(w *world, first *client)
	holds bool // the holder does not release the key, and it expires
	off   bool // the first waiter is cut off, and need not get the lock
}

func each(f func(m *inmemory.Master)) func(*world, *client) {
	return func(w *world, _ *client) {
		for _, m := range w.servers() {
			f(m)
		}
	}
}

func onPaths(f func(p *path)) func(*world, *client) {
	return func(_ *world, first *client) {
		for _, p := range first.paths {
			time.Sleep(time.Microsecond)
			p.set(f)
		}
	}
}

func nothing(*world, *client) {}

// troubles lists what can happen right before a key is released for which a line waits.
var troubles = []trouble{
	{name: "wake-ups are lost", begin: each(func(m *inmemory.Master) { m.LoseMessages(-1) }), end: each(func(m *inmemory.Master) { m.LoseMessages(0) })},
	{name: "one wake-up is lost", begin: each(func(m *inmemory.Master) { m.LoseMessages(1) }), end: each(func(m *inmemory.Master) { m.LoseMessages(0) })},
	{name: "wake-ups are late", begin: each(func(m *inmemory.Master) { m.DelayMessages(3 * time.Second) }), end: each(func(m *inmemory.Master) { m.DelayMessages(0) })},
	{name: "subscribers are cut off", begin: each((*inmemory.Master).BreakSubscriptions), end: nothing},
	{name: "subscribers are refused", begin: each(func(m *inmemory.Master) { m.RefuseSubscriptions(noSubscribe); m.BreakSubscriptions() }), end: each(func(m *inmemory.Master) { m.RefuseSubscriptions("") })},
	{name: "the key expires", begin: nothing, end: nothing, holds: true},
	{name: "the first is cut off in silence", off: true, begin: onPaths(func(p *path) { p.held[faultlink.ToServer]++; p.held[faultlink.ToClient]++ }), end: onPaths(func(p *path) { p.held[faultlink.ToServer]--; p.held[faultlink.ToClient]-- })},
	{name: "the first is cut off", off: true,
		begin: func(w *world, first *client) {
			onPaths(func(p *path) { p.refused++ })(w, first)
			for _, p := range first.paths {
				time.Sleep(time.Microsecond)
				p.Break()
			}
		},
		end: onPaths(func(p *path) { p.refused-- })},
}

// linePatience is how long a client waits in a calm line. Each client before it may take as
// long as the rule Stuck allows.
func linePatience(clients int) time.Duration { return time.Duration(1+clients) * stuck }

// calmLines has all clients wait for one key, three times, and then for two more keys with
// one trouble each. The rules judge their turns, and that nothing is left of the queues.
func (w *world) calmLines(alive []*client) {
	if len(alive) == 0 {
		return
	}
	var all sync.WaitGroup
	for _, c := range alive {
		for i := range 1 + c.index%2 { // goroutines of one client take turns
			all.Go(func() {
				r := stream(w.plan.Config.Seed, "line", c.index, i)
				for range 3 {
					c.sleep(background, exp(r, 2*time.Millisecond))
					w.waitInLine(c, r, lineKey, longest, linePatience(2*len(alive)))
				}
			})
		}
	}
	all.Wait()
	time.Sleep(moment)
	w.noQueues("a line that nothing disturbed")

	r := stream(w.plan.Config.Seed, "troubles")
	for i, n := range r.Perm(len(troubles))[:2] {
		w.troubledLine(alive, r, troubledKey(i), troubles[n])
	}
	time.Sleep(queueLife)
	w.noQueues("lines that were disturbed")
}

// moment is longer than it takes to get into a queue, or to leave it, when nothing fails.
const moment = 50 * time.Millisecond

// troubledLine has one client hold the key while the others line up for it, and then makes
// the trouble.
func (w *world) troubledLine(alive []*client, r *rand.Rand, key string, t trouble) {
	if len(alive) < 2 || t.off && len(alive) < 3 {
		return
	}
	w.add(history.Event{At: w.now(), Kind: history.Fault, Text: t.name + ", where " + key + " is waited for"})
	holder, others := alive[0], alive[1:]
	first := others[0]
	ttl := veryLong // its end must not wake anybody
	if w.plan.Guard > 0 {
		ttl = w.plan.Guard
	}
	if t.holds {
		ttl = longest
	}
	l, op := w.waitFor(holder, key, ttl, linePatience(0))
	if l == nil {
		return
	}
	var all sync.WaitGroup
	seed := r.Uint64()
	for i, c := range others {
		all.Go(func() {
			time.Sleep(time.Duration(i) * moment)
			patience := linePatience(len(others))
			if t.off && c == first {
				patience = stuck / 3
			}
			w.waitInLine(c, stream(seed, "wait", i), key, ttl, patience)
		})
	}
	time.Sleep(time.Duration(1+len(others)) * moment) // less than the ttl
	t.begin(w, first)
	if !t.holds {
		holder.release(background, l, op)
	}
	all.Wait()
	t.end(w, first)
	time.Sleep(settled)
}

// waitInLine takes the lock, and holds it for a moment.
func (w *world) waitInLine(c *client, r *rand.Rand, key string, ttl, patience time.Duration) {
	l, op := w.waitFor(c, key, ttl, patience)
	if l != nil {
		c.sleep(background, exp(r, 2*time.Millisecond))
		c.release(background, l, op)
	}
}

// waitFor waits for a lock. It reports a violation if the lock does not come, unless its
// patience is that of a client that was cut off.
func (w *world) waitFor(c *client, key string, ttl, patience time.Duration) (*redlock.Lock, int) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	defer c.clock.AfterFunc(patience, cancel).Stop()
	op := c.begin(key, true)
	l, err := c.lock.Acquire(ctx, key, ttl)
	if err != nil {
		c.say(history.Denied, op, key, 0, err)
		if patience > stuck/2 {
			w.report(history.Violation{At: w.now(), Rule: Liveness, Key: key, Text: fmt.Sprintf("client %d did not get %q within %v: %v", c.index+1, key, patience, err)})
		}
		return nil, 0
	}
	c.granted(op, l)
	return l, op
}
