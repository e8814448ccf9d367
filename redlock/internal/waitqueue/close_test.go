package waitqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Close ends a wait in any phase in bounded time, even on a node that hangs. If a context ends
// before that, it is the cause of an error that explains why the lock was not acquired.
func TestCloseInEveryPhaseOfAWait(t *testing.T) {
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 3))
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			d := time.Duration(random.IntN(4)) * time.Millisecond
			b.Delay(d, d)
			cfg := redlock.Config{Fair: random.IntN(2) == 0, Fencing: random.IntN(2) == 0}
			var all sync.WaitGroup
			var clients []*redlock.Redlock
			for range 3 {
				r := b.NewRedlock(cfg)
				clients = append(clients, r)
				for range 4 {
					seed := random.Uint64()
					all.Go(func() { waitUntilClosed(b, r, rand.New(rand.NewPCG(seed, 4))) })
				}
			}
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
			if random.IntN(2) == 0 {
				b.Stall(0)
			}
			time.Sleep(time.Duration(random.IntN(300_000)) * time.Microsecond)
			for _, r := range clients {
				// A few NodeTimeouts, and the time in which the clients give up a connection.
				assert.LessOrEqual(b, virtual.Took(func() { require.NoError(b, r.Close()) }), 8*time.Second, "seed %d", seed)
			}
			all.Wait()
			b.Resume(0)
			time.Sleep(5 * time.Second)
			assert.Empty(b, b.Has(key), "seed %d", seed)
		})
	}
}

// waitUntilClosed waits for the key again and again, with contexts that end.
func waitUntilClosed(b *virtual.Bed, r *redlock.Redlock, random *rand.Rand) {
	for {
		c, cancel := context.WithTimeout(ctx, time.Duration(1+random.IntN(500))*time.Millisecond)
		l, err := r.Acquire(c, key, time.Second)
		cause := context.Cause(c)
		cancel()
		var failed *redlock.QuorumError
		switch {
		case err == nil:
			time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
			if random.IntN(5) > 0 {
				_ = l.Release(ctx) // or the lock expires
			}
		case errors.Is(err, redlock.ErrClosed):
			return
		case !assert.ErrorAs(b, err, &failed), !assert.Error(b, cause), !assert.ErrorIs(b, err, cause),
			!assert.True(b, failed.Reason == nil || errors.Is(err, redlock.ErrHeld) || errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, redlock.ErrExpired), "%v", err):
			return
		}
	}
}

// A node that hangs in the middle of a handshake does not delay Close, however long the
// client is ready to wait. The locks are released before that.
func TestCloseWhileANodeHangsInTheHandshake(t *testing.T) {
	for _, readTimeout := range []time.Duration{0, 10 * time.Second} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			var nodes []redis.UniversalClient
			for _, m := range b.Masters.All() {
				nodes = append(nodes, m.Client(func(o *redis.Options) { o.ReadTimeout = readTimeout }))
			}
			r, err := redlock.New(nodes, redlock.Config{})
			require.NoError(b, err)
			held, err := r.TryAcquire(ctx, "held", time.Hour) // connects the lanes
			require.NoError(b, err)
			l := b.Acquire(key, time.Hour)
			b.Settle()
			b.Stall(0)
			c, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			_, err = r.Acquire(c, key, time.Hour)
			assert.ErrorIs(b, err, redlock.ErrHeld)
			go func() {
				time.Sleep(time.Second)
				assert.Equal(b, []int{0}, b.Has("held"), "nobody waits for the handshake to be released")
			}()
			assert.LessOrEqual(b, virtual.Took(func() { require.NoError(b, r.Close()) }), 12*time.Second)
			assert.Error(b, held.Context().Err())
			b.Resume(0)
			require.NoError(b, l.Release(ctx))
		})
	}
}

// The key was held all the time. That is also the reason for a waiter that takes over a wait and is
// stopped during its first try.
func TestAcquireThatInheritsAWaitReportsWhy(t *testing.T) {
	for d := range 40 {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			for _, m := range b.Masters.All() {
				m.RefuseSubscriptions("ERR no such thing") // so that waiters try often
			}
			b.Warm()
			b.Delay(10*time.Millisecond, 10*time.Millisecond)
			b.Steal(key, time.Hour, 0, 1, 2, 3, 4)
			errs := make(chan error, 2)
			for i := range 2 {
				c, cancel := context.WithTimeout(ctx, time.Second+time.Duration(i*d)*time.Millisecond)
				defer cancel()
				go func() {
					_, err := b.Redlock.Acquire(c, key, ttl)
					errs <- err
				}()
				time.Sleep(5 * time.Millisecond)
			}
			for range 2 {
				err := <-errs
				assert.ErrorIs(b, err, redlock.ErrHeld)
				assert.NotErrorIs(b, err, redlock.ErrNoQuorum)
			}
		})
	}
}

// Close ends every wait with ErrClosed, wherever it is in the queue, and leaves the queue.
func TestCloseEndsAllWaits(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
		p, other := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		var waits []*virtual.Waiter
		for i := range 100 {
			waits = append(waits, p.Wait(key, time.Hour))
			if i%2 == 0 {
				waits = append(waits, p.Wait(fmt.Sprint("free ", i), time.Hour))
			}
		}
		time.Sleep(300 * time.Millisecond)
		after := other.Wait(key, time.Hour)
		time.Sleep(300 * time.Millisecond)
		assert.Len(b, b.Queued(0, key), 2)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		assert.LessOrEqual(b, virtual.Took(func() { require.NoError(b, p.Close()) }), 100*time.Millisecond)
		for _, w := range waits {
			<-w.Done
			if w.Err != nil {
				assert.ErrorIs(b, w.Err, redlock.ErrClosed)
			}
		}
		assert.Len(b, b.Queued(0, key), 1)
		began := time.Now()
		require.NoError(b, l.Release(ctx))
		l = after.Hold()
		assert.Equal(b, 40*time.Millisecond, after.Got.Sub(began))
		require.NoError(b, l.Release(ctx))
		time.Sleep(100 * time.Millisecond)
		b.NoQueues()
		for i := range 5 {
			assert.Empty(b, b.Redis(i).Keys())
		}
	})
}
