// Package virtual runs tests of Redlocks on in-memory masters in virtual time: nothing takes
// any time unless the test delays it, so durations are exact.
package virtual

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock"
)

// Bed is a Redlock on in-memory masters, in a bubble (testing/synctest).
type Bed struct {
	*testing.T
	Masters *inmemory.Masters
	Redlock *redlock.Redlock // on all masters, with the test's configuration
}

// Key is the key that most tests lock, and TTL is the ttl.
const Key, TTL = "orders", 10 * time.Second

// NodeTimeout is the Config.NodeTimeout of tests that set none.
const NodeTimeout = 200 * time.Millisecond

// Run calls f in a bubble with n masters and a Redlock on clients with go-redis' default options.
func Run(t *testing.T, n int, cfg redlock.Config, f func(b *Bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &Bed{T: t, Masters: inmemory.StartVirtual(t, n)}
		b.Redlock = b.NewRedlock(cfg)
		f(b)
	})
}

// NewRedlock makes one more Redlock on the masters. It is closed with the test.
func (b *Bed) NewRedlock(cfg redlock.Config) *redlock.Redlock {
	b.Helper()
	r, err := redlock.New(b.Masters.Clients(), cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	return r
}

// Took returns the virtual time that f takes.
func Took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// Warm makes connections and caches scripts, so that only the round trips under test take time.
func (b *Bed) Warm() {
	b.Helper()
	l := b.Acquire("warm up", time.Second)
	b.Settle() // so that no node lacks the lock
	require.NoError(b, l.Extend(context.Background(), time.Second))
	b.Settle()
	require.NoError(b, l.Release(context.Background()))
	b.Settle()
	for i := range b.Masters.Len() {
		b.Commands(i)
	}
}

// Has lists the masters that have the key.
func (b *Bed) Has(key string) (which []int) {
	for i, m := range b.Masters.All() {
		if m.Miniredis().Exists(key) {
			which = append(which, i)
		}
	}
	return which
}

// Commands lists the commands that reached master i since the last call, without handshakes
// and INFO.
func (b *Bed) Commands(i int) (sent []string) {
	m := b.Masters.Master(i)
	for _, c := range m.Commands() {
		if !slices.Contains([]string{"HELLO", "CLIENT", "AUTH", "SELECT", "INFO"}, c[0]) {
			sent = append(sent, c[0])
		}
	}
	m.ResetCommands()
	return sent
}

// Asked returns Commands without those of a subscription.
func (b *Bed) Asked(i int) []string {
	return slices.DeleteFunc(b.Commands(i), func(c string) bool { return c == "SUBSCRIBE" || c == "PING" })
}

// Settle waits until everything under way that takes no time has ended.
func (b *Bed) Settle() { synctest.Wait() }

// Stall hangs masters: they accept requests and answer none until resumed.
func (b *Bed) Stall(which ...int) {
	for _, i := range which {
		b.Masters.Master(i).Stall()
	}
}

// Resume ends Stall.
func (b *Bed) Resume(which ...int) {
	for _, i := range which {
		b.Masters.Master(i).Resume()
	}
}

// Delay delays every request to the masters and every reply.
func (b *Bed) Delay(request, reply time.Duration) {
	for _, m := range b.Masters.All() {
		m.Delay(request, reply)
	}
}

// Steal stores a foreign value under the key, for ever if ttl is zero.
func (b *Bed) Steal(key string, ttl time.Duration, which ...int) {
	for _, i := range which {
		m := b.Masters.Master(i).Miniredis()
		require.NoError(b, m.Set(key, "somebody else"))
		if ttl > 0 {
			m.SetTTL(key, ttl)
		}
	}
}

// Acquire locks the key with the bed's Redlock.
func (b *Bed) Acquire(key string, ttl time.Duration) *redlock.Lock {
	b.Helper()
	l, err := b.Redlock.TryAcquire(context.Background(), key, ttl)
	require.NoError(b, err)
	return l
}

// Redis returns the server of master i.
func (b *Bed) Redis(i int) *miniredis.Miniredis { return b.Masters.Master(i).Miniredis() }

// Take locks Key for TTL.
func (b *Bed) Take(r *redlock.Redlock) *redlock.Lock {
	b.Helper()
	l, err := r.TryAcquire(context.Background(), Key, TTL)
	require.NoError(b, err)
	return l
}

// Cycle locks Key on every master and releases it.
func (b *Bed) Cycle(r *redlock.Redlock) {
	b.Helper()
	l := b.Take(r)
	b.Settle()
	b.Release(l)
}

// Release releases a lock on every master.
func (b *Bed) Release(l *redlock.Lock) {
	b.Helper()
	require.NoError(b, l.Release(context.Background()))
	b.Settle()
}
