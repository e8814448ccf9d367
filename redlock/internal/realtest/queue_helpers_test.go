package realtest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/redlock"
)

// spoken is a hook that counts what a Redlock sends to one node for one key, or for all keys if key
// is empty: "set", the queue script's "try", "enqueue" and "dequeue", and "release".
type spoken struct {
	key string
	mu  sync.Mutex
	n   map[string]int
}

func (s *spoken) see(cmd redis.Cmder) {
	args, what := cmd.Args(), ""
	if len(args) < 4 {
		return
	}
	switch verb, _ := args[0].(string); {
	case verb == "set" && (s.key == "" || args[1] == s.key):
		what = verb
	case !strings.HasPrefix(verb, "eval") || s.key != "" && args[3] != s.key:
		return
	case len(args) < 10:
		what = "release"
	default:
		what = fmt.Sprint(args[3+args[2].(int)])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[what]++
}

func (s *spoken) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n[what]
}

// overhear counts the commands of each client for a key.
func overhear(key string, clients []redis.UniversalClient) (all []*spoken) {
	for _, c := range clients {
		s := &spoken{key: key, n: map[string]int{}}
		c.AddHook(spy.Before(s.see))
		all = append(all, s)
	}
	return all
}

// total returns how often one kind of command was sent to all nodes.
func total(all []*spoken, what string) (n int) {
	for _, s := range all {
		n += s.count(what)
	}
	return n
}

// waiting is an Acquire under way.
type waiting struct {
	f      *fleet
	cancel context.CancelFunc
	done   chan struct{}
	lock   *redlock.Lock
	err    error
}

// wait begins to acquire a key that is held. The lock is released by the test, or by Close.
func (f *fleet) wait(r *redlock.Redlock, key string, ttl time.Duration) *waiting {
	ctx, cancel := context.WithCancel(f.ctx)
	w := &waiting{f: f, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lock, w.err = r.Acquire(ctx, key, ttl)
	}()
	f.Cleanup(func() { cancel(); <-w.done })
	return w
}

// over reports whether the wait has ended.
func (w *waiting) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// got waits for the lock.
func (w *waiting) got() *redlock.Lock {
	w.f.Helper()
	<-w.done // if it hangs, the context ends
	require.NoError(w.f, w.err)
	return w.lock
}

func queueKey(name string) string { return slot.Sibling("redlock:queue:", name) }

func flagKey(name string) string { return slot.Sibling("redlock:queued:", name) }

// tickets is the lowest score of a waiter. Lower scores are the times of woken clients.
const tickets = "100000000000000"

// queued waits until so many clients are in the queue for a name on each of the masters.
func (f *fleet) queued(name string, n int64, masters ...int) {
	f.Helper()
	for _, i := range f.of(masters) {
		f.eventually(fmt.Sprintf("master %d has %d in the queue for %s", i, n, name), func() bool {
			return f.admin[i].ZCount(f.ctx, queueKey(name), tickets, "+inf").Val() == n
		})
	}
}

// line lets the Redlocks wait, one after the other. Each is in the queues of all masters before the
// next comes.
func (f *fleet) line(key string, ttl time.Duration, all ...*redlock.Redlock) (line []*waiting) {
	f.Helper()
	for i, r := range all {
		line = append(line, f.wait(r, key, ttl))
		f.queued(key, int64(i)+1)
	}
	return line
}

// redlocks makes n Redlocks, each with its own clients.
func (f *fleet) redlocks(n int, cfg redlock.Config) (all []*redlock.Redlock) {
	f.Helper()
	for range n {
		all = append(all, f.redlock(cfg))
	}
	return all
}

// takeTurns lets each waiter of the line release the lock when it gets it, and returns their order.
// A release may find that a majority has forgotten the lock.
func (f *fleet) takeTurns(line []*waiting) (order []int) {
	f.Helper()
	type turn struct {
		i   int
		err error
	}
	turns := make(chan turn, len(line))
	for i, w := range line {
		go func() {
			<-w.done
			turns <- turn{i, w.err}
			if w.err == nil {
				_ = w.lock.Release(f.ctx)
			}
		}()
	}
	for range line {
		t := <-turns
		require.NoError(f, t.err, "waiter %d", t.i)
		order = append(order, t.i)
	}
	return order
}

// nobodyWaits waits until the masters have no queue and no queue's flag.
func (f *fleet) nobodyWaits(masters ...int) {
	f.Helper()
	for _, i := range f.of(masters) {
		f.eventually(fmt.Sprintf("master %d has no queue", i), func() bool {
			left, err := f.admin[i].Keys(f.ctx, "redlock:queue*").Result()
			return err == nil && len(left) == 0
		})
	}
}

// clean waits until the masters have neither the key nor a queue.
func (f *fleet) clean(key string, masters ...int) {
	f.Helper()
	f.gone(key, masters...)
	f.nobodyWaits(masters...)
}

// listeners returns how many connections of each master wait for messages.
func (f *fleet) listeners() (n []int) {
	f.Helper()
	for _, a := range f.admin {
		clients, err := a.Do(f.ctx, "client", "list", "type", "pubsub").Text()
		require.NoError(f, err)
		n = append(n, strings.Count(clients, "id="))
	}
	return n
}

// listening makes the Redlocks subscribe on all masters, so that their later waits are subscribed
// from the start. Its key has no other use.
func (f *fleet) listening(all ...*redlock.Redlock) {
	f.Helper()
	const key = "held for subscriptions"
	holder := f.redlock(redlock.Config{})
	l := f.hold(holder, key)
	for _, r := range all {
		w := f.wait(r, key, ttl)
		f.queued(key, 1) // this may be true twice, so:
		f.heard(key)
		w.cancel()
		<-w.done
		f.queued(key, 0)
	}
	require.NoError(f, f.release(l))
	f.gone(key)
}

// heard waits until every waiter for a key has a subscription on all masters.
func (f *fleet) heard(name string) {
	f.Helper()
	for i, a := range f.admin {
		f.eventually(fmt.Sprintf("all hear master %d", i), func() bool {
			for _, who := range a.ZRangeArgs(f.ctx, redis.ZRangeArgs{Key: queueKey(name), ByScore: true, Start: tickets, Stop: "+inf"}).Val() {
				channel, _, _ := strings.Cut(who, " ")
				channel = "redlock:wake:" + channel
				if a.PubSubNumSub(f.ctx, channel).Val()[channel] == 0 {
					return false
				}
			}
			return true
		})
	}
}
