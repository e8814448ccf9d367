package sim

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scene"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock/fence"
)

// resource is what the lock of a scenario protects: a key of a Redis of its own. With fencing a
// fence.RedisGuard checks the tokens, without it every write is accepted.
type resource struct {
	w      *world
	client *redis.Client
	guard  *fence.RedisGuard

	mu     sync.Mutex
	writes []scene.Write
	top    int64
}

// shownWrites is how many writes a viewer sees.
const shownWrites = 8

func newResource(w *world, m *inmemory.Master) *resource {
	p := m.Path()
	p.Shape(func(d faultlink.Direction) (time.Duration, bool) {
		if d == faultlink.ToClient {
			return 0, false // so that write knows when the resource decided
		}
		return w.plan.Latency, false
	})
	r := &resource{w: w, client: p.Client(), writes: []scene.Write{}}
	var err error
	r.guard, err = fence.NewRedis(r.client)
	w.must(err)
	w.show.line(scene.Resource{Writes: r.writes})
	return r
}

// write writes under a lock, and records whether that was late.
func (r *resource) write(c *client, op int, token int64) {
	value := fmt.Sprintf("client %d", c.index+1)
	var err error
	if token > 0 {
		err = r.guard.Set(background, "report", value, 0, token)
	} else {
		err = r.client.Set(background, "report", value, 0).Err()
	}
	w := r.w
	stale, later := w.newerLock(c.index+1, op)
	text := fmt.Sprintf("writes with token %d", token)
	if token == 0 {
		text = "writes"
	}
	refused := errors.Is(err, fence.ErrStaleToken)
	switch {
	case refused:
		text += ", and is refused"
	case err != nil:
		w.must(err)
	}
	c.log(history.Event{Kind: history.Wrote, Op: op, Key: keyName(0), Token: token, Text: text}, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, scene.Write{At: w.now(), Client: c.index + 1, Token: token, Accepted: !refused, Stale: stale})
	r.writes = r.writes[max(0, len(r.writes)-shownWrites):]
	if !refused {
		r.top = max(r.top, token)
	}
	w.show.line(scene.Resource{Highest: r.top, Writes: append([]scene.Write{}, r.writes...)})
	if stale && token == 0 && w.slots == 0 { // a token is the resource's business
		w.report(history.Violation{
			At: w.now(), Rule: StaleWrite, Key: keyName(0), Locks: later,
			Text: fmt.Sprintf("client %d wrote under its lock #%d, though client %d has had the lock since", c.index+1, op, later[1].Client),
		})
	}
}

func (r *resource) close() { r.w.must(r.client.Close()) }

// newerLock reports whether another client was granted a lock after this one, and returns both.
func (w *world) newerLock(client, op int) (newer bool, locks []history.Lock) {
	all := history.Locks(w.log.Events())
	for _, l := range all {
		if l.Client == client && l.Op == op {
			locks = append(locks, l)
		} else if len(locks) > 0 && l.Client != client {
			return true, append(locks, l)
		}
	}
	return false, locks
}
