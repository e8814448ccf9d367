package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/quorum"
)

// foreigner takes the key as clients of most other libraries do: by SET with NX and PX and
// a value of its own on a majority. It releases by compare-and-delete, which wakes nobody.
// Its locks are in the history like all others.
type foreigner struct {
	c      *client
	nodes  []redis.UniversalClient
	random *rand.Rand // for its values
}

// foreignTimeout is how long a foreigner waits for a node.
const foreignTimeout = 50 * time.Millisecond

const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// foreigner contends for the key until the part is over.
func (w *world) foreigner(c *client, r *rand.Rand, p part) {
	f := &foreigner{c: c, random: stream(w.plan.Config.Seed, "foreign", c.index, int(p.from))}
	for _, path := range c.paths {
		f.nodes = append(f.nodes, path.Client(func(opts *redis.Options) {
			opts.Dialer = path.connect(opts.Dialer)
			opts.MaxRetries, opts.DialerRetries = -1, 1
			opts.DialTimeout, opts.ReadTimeout = time.Second, time.Second
		}))
	}
	t := w.plan.Trial
	ctx, cancel := w.until(p, c)
	defer cancel()
	for ctx.Err() == nil {
		hold, think := t.Hold, t.Think
		if t.Beat {
			c.sleep(ctx, p.to-w.now()-(p.to-w.now()-1)/(hold+think)*(hold+think)) // to the next beat
		} else {
			hold, think = beside(r), beside(r)
			c.sleep(ctx, think)
		}
		for ctx.Err() == nil {
			began := w.now()
			if value, op, until := f.take(p.key); value != "" {
				c.sleep(background, hold-(w.now()-began))
				f.release(p.key, value, op, until)
				break
			}
			if t.Beat {
				break
			}
			c.sleep(ctx, pollPause(r))
		}
	}
}

// each asks all nodes at the same time, and counts those that say yes.
func (f *foreigner) each(ask func(ctx context.Context, node redis.UniversalClient) bool) (yes int) {
	ctx, cancel := context.WithTimeout(background, foreignTimeout)
	defer cancel()
	var all sync.WaitGroup
	said := make([]bool, len(f.nodes))
	for i, node := range f.nodes {
		all.Go(func() { said[i] = ask(ctx, node) })
	}
	all.Wait()
	for _, ok := range said {
		if ok {
			yes++
		}
	}
	return yes
}

// take tries once to take the key. The returned value is empty if it failed.
func (f *foreigner) take(key string) (value string, op int, until time.Duration) {
	c := f.c
	op = c.begin(key, false)
	value = fmt.Sprintf("foreign %d %x", c.index+1, f.random.Uint64())
	start := c.w.now()
	granted := f.each(func(ctx context.Context, node redis.UniversalClient) bool {
		ok, err := node.SetNX(ctx, key, value, longest).Result()
		return err == nil && ok
	})
	until = start + longest - longest/50
	if granted < quorum.Size(len(f.nodes)) || c.w.now() >= until {
		f.forget(key, value)
		c.say(history.Denied, op, key, 0, nil)
		return "", op, 0
	}
	c.w.own(value, c.index, op)
	c.say(history.Granted, op, key, until, nil)
	return value, op, until
}

func (f *foreigner) release(key, value string, op int, until time.Duration) {
	f.c.say(history.Ended, op, key, until, nil)
	f.c.say(history.Releasing, op, key, until, nil)
	var err error
	if f.forget(key, value) < quorum.Size(len(f.nodes)) {
		err = context.DeadlineExceeded
	}
	f.c.say(history.Released, op, key, 0, err)
}

// forget deletes the key where it has the value, and counts those nodes.
func (f *foreigner) forget(key, value string) (deleted int) {
	return f.each(func(ctx context.Context, node redis.UniversalClient) bool {
		n, err := node.Eval(ctx, compareAndDelete, []string{key}, value).Int()
		return err == nil && n == 1
	})
}
