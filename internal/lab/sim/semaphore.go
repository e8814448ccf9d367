package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/quorum"
)

// A scenario can have a counting semaphore instead of the lock, made as people make it from a lock: each
// master grants a number of slots, and a client has one if a majority of masters granted it. It lets too
// many clients in, because two majorities need not be of the same clients: five masters with two slots
// have ten, and ten are enough for three majorities of three. It is not part of the library.

// seat is a slot that a client has.
type seat struct {
	value string
	ctx   context.Context // done when the slot is released, or its time is over
	end   context.CancelCauseFunc
}

// takeSlot has as arguments a value, a ttl in milliseconds, the number of slots, and the time in
// milliseconds. releaseSlot has the value.
const (
	takeSlot = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[4])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[4] + ARGV[2], ARGV[1])
return 1`
	releaseSlot = `return redis.call('ZREM', KEYS[1], ARGV[1])`
)

// order reads a command; see operation.
func (w *world) order(command []string) order {
	if w.slots > 0 && len(command) == 8 && command[0] == "EVAL" {
		return order{verb: "acquire", key: command[3], value: command[4]}
	}
	return operation(command)
}

// acquireSlot asks all masters for a slot, once or until ctx ends. It returns nil if it got none.
func (c *client) acquireSlot(ctx context.Context, wait bool) *grant {
	ttl, key := c.w.plan.Clients[c.index].TTLs[0], keyName(0)
	op := c.begin(key, wait)
	need := quorum.Size(len(c.nodes))
	for try := 1; ; try++ {
		value := fmt.Sprintf("client %d #%d.%d", c.index+1, op, try)
		began := c.clock.Now()
		granted := c.everywhere(value, takeSlot, value, ttl.Milliseconds(), c.w.slots, time.Now().UnixMilli())
		left := ttl - c.clock.Now().Sub(began)
		if granted >= need && left > 0 && !c.gone() {
			return c.hasSlot(op, value, left)
		}
		c.everywhere("", releaseSlot, value)
		if c.sleep(ctx, 200*time.Millisecond); !wait || ctx.Err() != nil || c.gone() {
			c.log(history.Event{Kind: history.Denied, Op: op, Key: key, Err: fmt.Sprintf("%d of %d masters granted a slot, and it needs %d", granted, len(c.nodes), need)}, nil)
			return nil
		}
	}
}

// hasSlot logs that the client has a slot, which ends when left is over.
func (c *client) hasSlot(op int, value string, left time.Duration) *grant {
	ctx, end := context.WithCancelCause(background)
	until := c.w.now() + left
	c.log(history.Event{Kind: history.Granted, Op: op, Key: keyName(0), Until: until}, nil)
	timer := c.clock.AfterFunc(left, func() { end(fmt.Errorf("its time is over")) })
	context.AfterFunc(ctx, func() {
		timer.Stop()
		if err := context.Cause(ctx); err != context.Canceled {
			c.log(history.Event{Kind: history.Ended, Op: op, Key: keyName(0), Until: until}, err)
		}
	})
	return &grant{seat: &seat{value, ctx, end}, op: op, until: until}
}

func (c *client) releaseSlot(g *grant) {
	g.seat.end(nil)
	c.log(history.Event{Kind: history.Releasing, Op: g.op, Key: keyName(0), Until: g.until}, nil)
	c.everywhere("", releaseSlot, g.seat.value)
	c.log(history.Event{Kind: history.Released, Op: g.op, Key: keyName(0)}, nil)
}

// everywhere runs a script on all masters in parallel, and returns how many answered 1. With a value it
// shows the votes.
func (c *client) everywhere(value, script string, args ...any) (granted int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	ctx, cancel := context.WithTimeout(background, c.w.plan.Clients[c.index].NodeTimeout)
	defer cancel()
	for i, node := range c.nodes {
		all.Go(func() {
			n, err := node.Eval(ctx, script, []string{keyName(0)}, args...).Int()
			vote := map[bool]string{true: "granted", false: "refused"}[n == 1]
			if err != nil {
				vote = "failed"
			}
			if value != "" && !c.gone() {
				c.w.show.voted(c.index+1, i+1, "acquire", vote)
			}
			mu.Lock()
			defer mu.Unlock()
			if vote == "granted" {
				granted++
			}
		})
	}
	all.Wait()
	c.gate()
	return granted
}

// slotsOn returns the slots that are taken on a master.
func (w *world) slotsOn(redis *miniredis.Miniredis) (slots []content) {
	if w.slots == 0 {
		return nil
	}
	values, _ := redis.ZMembers(keyName(0))
	ends, _ := redis.SortedSet(keyName(0))
	for i, value := range values {
		if ttl := time.Until(time.UnixMilli(int64(ends[value]))); ttl > 0 {
			slots = append(slots, content{key: fmt.Sprintf("slot %d", i+1), value: value, ttl: ttl})
		}
	}
	return slots
}
