package virtual

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

// Party is a Redlock on its own paths, so that a test sees its commands and can cut it off.
type Party struct {
	*redlock.Redlock
	Bed   *Bed
	Name  string           // unique in the test binary
	Paths []*inmemory.Path // one to each master
}

var parties atomic.Int32 // for their names

// NewParty makes one more Redlock. It is closed with the test.
func (b *Bed) NewParty(cfg redlock.Config) *Party {
	b.Helper()
	p := &Party{Bed: b, Name: fmt.Sprint("party ", parties.Add(1))}
	var nodes []redis.UniversalClient
	for _, m := range b.Masters.All() {
		path := m.Path()
		p.Paths = append(p.Paths, path)
		nodes = append(nodes, path.Client())
	}
	r, err := redlock.New(nodes, cfg)
	require.NoError(b, err)
	b.Cleanup(func() {
		// While go-redis shakes hands on a connection of a subscription, it holds a mutex. Close
		// waits for that mutex, and that stops the clock of a bubble.
		b.Delay(0, 0)
		p.Revive()
		time.Sleep(2 * time.Second)
		require.NoError(b, r.Close())
	})
	p.Redlock = r
	return p
}

// ReadyParty makes a party whose connections are made and whose masters know the scripts.
func (b *Bed) ReadyParty(cfg redlock.Config) *Party {
	b.Helper()
	Crowded(b.T)
	p := b.NewParty(cfg)
	l, err := p.TryAcquire(context.Background(), p.Name, time.Second)
	require.NoError(b, err)
	b.Settle()
	require.NoError(b, l.Release(context.Background()))
	b.Settle()
	return p
}

// Waiter is a call of Acquire that is under way.
type Waiter struct {
	*Party
	Begun  time.Time          // when Acquire was called
	Cancel context.CancelFunc // ends the context of Acquire
	Done   chan struct{}      // closed when Acquire has returned
	Got    time.Time          // when Acquire returned; set before Done is closed, as are Lock and Err
	Lock   *redlock.Lock
	Err    error
}

// Wait lets the party wait for the key.
func (p *Party) Wait(key string, ttl time.Duration) *Waiter {
	c, cancel := context.WithCancel(context.Background())
	w := &Waiter{Party: p, Begun: time.Now(), Cancel: cancel, Done: make(chan struct{})}
	go func() {
		w.Lock, w.Err = p.Acquire(c, key, ttl)
		w.Got = time.Now()
		close(w.Done)
	}()
	return w
}

// Hold waits for the lock and returns it.
func (w *Waiter) Hold() *redlock.Lock {
	w.Bed.Helper()
	<-w.Done
	w.Cancel()
	require.NoError(w.Bed, w.Err)
	w.Bed.Settle() // every node has been asked
	return w.Lock
}

// Finish lets each waiter take the lock and release it, in the order in which they get it.
func Finish(b *Bed, queue ...*Waiter) {
	b.Helper()
	var all sync.WaitGroup
	for _, w := range queue {
		all.Go(func() {
			<-w.Done
			w.Cancel()
			if assert.NoError(b, w.Err) {
				b.Settle()
				assert.NoError(b, w.Lock.Release(context.Background()))
			}
		})
	}
	all.Wait()
}

// Over reports whether the wait is over.
func (w *Waiter) Over() bool {
	select {
	case <-w.Done:
		return true
	default:
		return false
	}
}

// Queued lists the entries of a key's queue on a node, in its order, without their
// deadlines.
func (b *Bed) Queued(i int, key string) (who []string) {
	members, err := b.Redis(i).ZMembers("redlock:queue:{" + key + "}")
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

// NoQueues asserts that no queue is left on any node once everything on its way has arrived.
func (b *Bed) NoQueues() {
	b.Helper()
	time.Sleep(100 * time.Millisecond)
	b.Settle()
	for i := range b.Masters.Len() {
		for _, name := range b.Redis(i).Keys() {
			assert.NotContains(b, name, "redlock:queue", "node %d", i)
		}
	}
}

// ReadyParties makes n ready parties.
func (b *Bed) ReadyParties(n int, cfg redlock.Config) (all []*Party) {
	b.Helper()
	for range n {
		all = append(all, b.ReadyParty(cfg))
	}
	return all
}

// Hold lets the party lock Key.
func (b *Bed) Hold(p *Party, ttl time.Duration) *redlock.Lock {
	b.Helper()
	l, err := p.TryAcquire(context.Background(), Key, ttl)
	require.NoError(b, err)
	b.Settle()
	return l
}

// WaitInTurn lets the parties wait for the key, one after the other.
func (b *Bed) WaitInTurn(parties []*Party, key string, apart time.Duration) (queue []*Waiter) {
	for _, p := range parties {
		queue = append(queue, p.Wait(key, time.Hour))
		time.Sleep(apart)
	}
	return queue
}

// Crash makes a party's process look ended to the masters. Its goroutines go on.
func (p *Party) Crash() {
	for _, path := range p.Paths {
		path.Refuse(true)
		path.Break()
	}
}

// Hang cuts a party off, and its connections still look alive.
func (p *Party) Hang() {
	for _, path := range p.Paths {
		path.Hold(true, true)
	}
}

// Revive ends Crash and Hang.
func (p *Party) Revive() {
	for _, path := range p.Paths {
		path.Refuse(false)
		path.Heal()
	}
}
