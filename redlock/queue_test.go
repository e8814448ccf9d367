package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

// party is a Redlock on paths of its own, so that a test sees what it sends and can cut
// it off.
type party struct {
	*redlock.Redlock
	b     *bed
	name  string
	paths []*inmemory.Path
}

var parties atomic.Int32 // for their names

// party is one more Redlock, closed with the test; its connections are made.
func (b *bed) party(cfg redlock.Config) *party {
	b.Helper()
	p := &party{b: b, name: fmt.Sprint("party ", parties.Add(1))}
	var nodes []redis.UniversalClient
	for _, m := range b.masters.All() {
		path := m.Path()
		p.paths = append(p.paths, path)
		nodes = append(nodes, path.Client())
	}
	r, err := redlock.New(nodes, cfg)
	require.NoError(b, err)
	b.Cleanup(func() {
		// While go-redis shakes hands on a connection to listen on it holds a mutex, which
		// Close waits for, and that stops the clock of a bubble.
		b.delay(0, 0)
		p.revive()
		time.Sleep(2 * time.Second)
		require.NoError(b, r.Close())
	})
	p.Redlock = r
	return p
}

// ready is a party whose connections are made and that knows the scripts.
func (b *bed) ready(cfg redlock.Config) *party {
	b.Helper()
	crowded(b.T)
	p := b.party(cfg)
	l, err := p.TryAcquire(ctx, p.name, time.Second)
	require.NoError(b, err)
	b.settle()
	require.NoError(b, l.Release(ctx))
	b.settle()
	return p
}

// waiter is somebody who waits for a key.
type waiter struct {
	*party
	begun  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed in the end
	got    time.Time     // then: when it was
	lock   *redlock.Lock
	err    error
}

// wait has the party wait for the key.
func (p *party) wait(key string, ttl time.Duration) *waiter {
	c, cancel := context.WithCancel(ctx)
	w := &waiter{party: p, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
	go func() {
		w.lock, w.err = p.Acquire(c, key, ttl)
		w.got = time.Now()
		close(w.done)
	}()
	return w
}

// hold waits for the lock and returns it.
func (w *waiter) hold() *redlock.Lock {
	w.b.Helper()
	<-w.done
	w.cancel()
	require.NoError(w.b, w.err)
	w.b.settle() // every node has been asked
	return w.lock
}

// finish has everybody who still waits take the lock and release it, whose turn it is.
func finish(b *bed, queue ...*waiter) {
	b.Helper()
	var all sync.WaitGroup
	for _, w := range queue {
		all.Go(func() {
			<-w.done
			w.cancel()
			if assert.NoError(b, w.err) {
				b.settle()
				assert.NoError(b, w.lock.Release(ctx))
			}
		})
	}
	all.Wait()
}

// over reports whether the wait is.
func (w *waiter) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// queued lists who is in the queue of a key on a node, in its order, without their
// deadlines.
func (b *bed) queued(i int, key string) (who []string) {
	members, err := b.redis(i).ZMembers("redlock:queue:{" + key + "}")
	if err != nil {
		return nil
	}
	for _, m := range members {
		if !strings.HasPrefix(m, "@") {
			who = append(who, m)
		}
	}
	return who
}

// noQueues asserts that nodes keep nothing about those who waited, as soon as what is on
// its way has arrived.
func (b *bed) noQueues() {
	b.Helper()
	time.Sleep(100 * time.Millisecond)
	b.settle()
	for i := range b.masters.Len() {
		for _, name := range b.redis(i).Keys() {
			assert.NotContains(b, name, "redlock:queue", "node %d", i)
		}
	}
}

// crowd is n ready parties.
func (b *bed) crowd(n int, cfg redlock.Config) (all []*party) {
	b.Helper()
	for range n {
		all = append(all, b.ready(cfg))
	}
	return all
}

// hold has the party take the key.
func (b *bed) hold(p *party, ttl time.Duration) *redlock.Lock {
	b.Helper()
	l, err := p.TryAcquire(ctx, key, ttl)
	require.NoError(b, err)
	b.settle()
	return l
}

// line has the parties wait for the key, one after the other.
func (b *bed) line(parties []*party, key string, apart time.Duration) (queue []*waiter) {
	for _, p := range parties {
		queue = append(queue, p.wait(key, time.Hour))
		time.Sleep(apart)
	}
	return queue
}

// crash has a party's process end as it looks to the masters; its goroutines go on.
func (p *party) crash() {
	for _, path := range p.paths {
		path.Refuse(true)
		path.Break()
	}
}

// hang cuts a party off, with connections that look alive.
func (p *party) hang() {
	for _, path := range p.paths {
		path.Hold(true, true)
	}
}

// revive ends crash and hang.
func (p *party) revive() {
	for _, path := range p.paths {
		path.Refuse(false)
		path.Heal()
	}
}
