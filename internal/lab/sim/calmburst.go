package sim

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/redlock"
)

const ownBurst = 16 // keys

// calmBurst takes many locks of the client's own at once. A node may be slow for a moment,
// or its connection break; still no operation that queues up before it may be lost, or
// overtake another. At the end each node has all the keys, or none.
func (w *world) calmBurst(c *client, ttl time.Duration, want func(what string, ok bool, got any)) {
	brief := 100 * time.Millisecond // longer than anything takes when nothing fails
	r := stream(w.plan.Config.Seed, "calm", c.index)
	locks := make([]*redlock.Lock, ownBurst)
	members := make([]member, ownBurst)
	key := func(i int) string { return fmt.Sprintf("own%d.%d", 1+c.index, 1+i) }
	take := func(i int, _ *member) {
		l, err := c.lock.TryAcquire(background, key(i), ttl)
		want("did not get one of its own locks in a burst", err == nil, err)
		locks[i] = l
	}
	release := func(i int, _ *member) {
		if l := locks[i]; l != nil {
			err := l.Release(background)
			want("could not release one of a burst", err == nil, err)
		}
	}
	keys := func() (n int) {
		for i := range locks {
			for _, m := range w.servers() {
				if value, err := m.Miniredis().Get(key(i)); err == nil && locks[i] != nil && value == locks[i].Value() {
					n++
				}
			}
		}
		return n
	}
	all := ownBurst * w.plan.Nodes
	slow := c.paths[r.IntN(w.plan.Nodes)]

	together(members, take)
	c.sleep(background, brief)
	want("did not give the locks of a burst to all nodes", keys() == all, keys())

	// The node gets the releases, and then the next locks on the same keys. With more than
	// two nodes, so that the others are a quorum, some releases are lost with a connection
	// and have to be sent again: the first one while more queue up, or many in one batch.
	for torn := range 3 {
		way, pause := faultlink.ToServer, w.plan.Clients[c.index].NodeTimeout/4
		if torn > 0 && w.plan.Nodes > 2 {
			way, pause = faultlink.ToClient, pause/2 // half the pause, as the client has to connect in time
			slow.Tear(nth(torn, r.Float64()))
		}
		if torn < 2 {
			slow.set(func(p *path) { p.held[way]++ })
			c.clock.AfterFunc(pause, func() { slow.set(func(p *path) { p.held[way]-- }) })
		}
		together(members, release)
		if torn == 2 {
			c.sleep(background, 8*time.Millisecond) // wait, as a lost SET is not sent again
		}
		slow.Tear(slow.tear)
		together(members, take)
		c.sleep(background, brief)
		want("did not give a slow node the locks that it had been asked for last", keys() == all, keys())
	}

	together(members, release)
	c.sleep(background, brief)
	want("left behind what it had released in a burst", keys() == 0, keys())
}

// nth returns a function for [faultlink.Path.Tear] that tears the n-th request after the
// given share of its bytes.
func nth(n int, after float64) func(faultlink.Direction, int) int {
	var seen atomic.Int32
	return func(d faultlink.Direction, bytes int) int {
		if d == faultlink.ToServer && int(seen.Add(1)) == n {
			return int(after * float64(bytes))
		}
		return bytes
	}
}
