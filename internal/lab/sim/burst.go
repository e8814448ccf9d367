package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/redlock"
)

// Goroutines that each wait for an answer before they ask again never make a queue before a
// node. Many locks at once make one before any node that does not answer at once, and make
// batches of all kinds of operations. So some clients burst.

const (
	// burstKeys is the number of keys that bursts share. It is small, so that the bursts of
	// two clients want the same keys.
	burstKeys  = 40
	leastBurst = 8
	// burstPatience is how long members of a burst wait on average. Meanwhile nobody else
	// gets the keys that they hold.
	burstPatience = 100 * time.Millisecond
)

func burstKey(i int) string { return fmt.Sprintf("b%d", 1+i) }

// keys lists the keys that clients contend for.
func (p Plan) keys() (keys []string) {
	for i := range p.Keys {
		keys = append(keys, keyName(i))
	}
	if p.bursts() {
		for i := range burstKeys {
			keys = append(keys, burstKey(i))
		}
	}
	if anyOf(p.Kinds, moves) {
		keys = append(keys, gripKey)
	}
	return keys
}

// member is one goroutine of a burst, and its lock.
type member struct {
	r  *rand.Rand // its own, as the scheduler decides the order of the members
	l  *redlock.Lock
	op int
}

// burst takes many locks at once, holds those that it got for a moment, and releases all at
// once. In between its members do different things at the same time, so that operations of
// all kinds share batches.
func (c *client) burst(r *rand.Rand, ttls []time.Duration) {
	keys := r.Perm(burstKeys)[:leastBurst+r.IntN(burstKeys-leastBurst+1)]
	ttl, wait, seed := pick(r, ttls...), r.IntN(4) == 0, r.Uint64()
	members := make([]member, len(keys))
	take := func(i int, m *member) {
		m.l, m.op = c.acquire(m.r, burstKey(keys[i]), ttl, wait, burstPatience)
	}
	release := func(_ int, m *member) {
		if m.l != nil {
			c.release(background, m.l, m.op)
			m.l = nil
		}
	}
	for i := range members {
		members[i].r = stream(seed, "member", i)
	}
	together(members, take)
	for range r.IntN(3) {
		together(members, func(i int, m *member) {
			switch what := m.r.IntN(8); {
			case m.l == nil && what < 2:
				take(i, m)
			case m.l == nil:
			case what == 0:
				m.l.KeepAlive()
			case what < 3:
				c.extend(m.r, m.l, m.op, ttl)
			case what < 5:
				release(i, m)
			}
		})
		c.sleep(background, exp(r, 20*time.Millisecond))
	}
	together(members, release)
}

// together calls do for all members at once, or rather a nanosecond apart: timers of one
// instant fire in an order that the seed does not decide.
func together(members []member, do func(i int, m *member)) {
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() {
			time.Sleep(time.Duration(1 + i))
			do(i, &members[i])
		})
	}
	all.Wait()
}

// finishBurst takes all keys of bursts once more, at once and without faults.
func (w *world) finishBurst(c *client, r *rand.Rand) {
	seed := r.Uint64()
	together(make([]member, burstKeys), func(i int, m *member) {
		m.r = stream(seed, "member", i)
		w.takeOnce(c, m.r, burstKey(i))
	})
}

// takeOnce takes and releases a lock when nothing fails any more. It reports a violation of
// Liveness if the lock does not come in time.
func (w *world) takeOnce(c *client, r *rand.Rand, key string) (ok bool) {
	ctx, cancel := context.WithTimeout(background, w.patience())
	op := c.begin(key, true)
	l, err := c.lock.Acquire(ctx, key, w.plan.longest())
	for errors.Is(err, redlock.ErrDuplicateNode) && ctx.Err() == nil {
		c.sleep(ctx, time.Second) // the client's next request shows it that the duplicate is gone
		l, err = c.lock.Acquire(ctx, key, w.plan.longest())
	}
	cancel()
	if err != nil {
		c.say(history.Denied, op, key, 0, err)
		w.report(history.Violation{At: w.now(), Rule: Liveness, Key: key, Text: fmt.Sprintf("client %d did not get %q within %v after the last fault: %v", c.index+1, key, w.patience(), err)})
		return false
	}
	c.granted(op, l)
	c.sleep(background, exp(r, 5*time.Millisecond))
	c.release(background, l, op)
	return true
}
