package redlock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// detach detaches the lock, which must succeed.
func detach(b *virtual.Bed, l *redlock.Lock) (handle string) {
	b.Helper()
	handle, err := l.Detach()
	require.NoError(b, err)
	require.Regexp(b, `^redlock1\.[A-Za-z0-9_-]+$`, handle)
	require.Equal(b, redlock.ErrDetached, context.Cause(l.Context()))
	return handle
}

// resume goes on with the lock of a handle, which must succeed.
func resume(b *virtual.Bed, r *redlock.Redlock, handle string, ttl time.Duration) *redlock.Lock {
	b.Helper()
	l, err := r.Resume(ctx, handle, ttl)
	require.NoError(b, err)
	return l
}

func TestDetachEndsTheLockHereAndKeepsItsKeys(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		done := l.Context().Done()
		for i := range 5 {
			b.Commands(i)
		}
		assert.Zero(t, virtual.Took(func() { detach(b, l) }))
		<-done
		assert.False(t, l.Valid())
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrDetached)
		assert.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrDetached)
		handle, err := l.Detach()
		assert.ErrorIs(t, err, redlock.ErrDetached)
		assert.Empty(t, handle)
		require.NoError(t, b.Redlock.Close())
		b.Settle()
		for i := range 5 {
			assert.Empty(t, b.Commands(i), "no node was asked, and Close released nothing")
		}
		assert.Len(t, b.Has(key), 5)
		time.Sleep(ttl)
		assert.Empty(t, b.Has(key), "they expire in time if nobody resumes the lock")
	})
}

func TestDetachEndsRenewals(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		l.KeepAlive()
		time.Sleep(10 * ttl)
		b.Settle()
		for i := range 5 {
			b.Asked(i)
		}
		detach(b, l)
		l.KeepAlive()
		time.Sleep(9 * time.Second) // a subscription that served the lock may end meanwhile
		b.Settle()
		for i := range 5 {
			assert.Empty(t, b.Asked(i))
		}
	})
}

func TestDetachOfALockThatHasEndedReturnsItsCause(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		fails := func(l *redlock.Lock, want error) {
			t.Helper()
			b.Settle()
			for i := range 5 {
				b.Commands(i)
			}
			handle, err := l.Detach()
			assert.ErrorIs(t, err, want)
			assert.ErrorContains(t, err, `redlock: detach "orders"`)
			assert.Empty(t, handle)
			b.Settle()
			assert.Empty(t, b.Commands(0))
		}
		l := b.Acquire(key, ttl)
		b.Release(l)
		fails(l, redlock.ErrReleased)

		l = b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, time.Second, 0, 1, 2)
		require.ErrorIs(t, l.Extend(ctx, ttl), redlock.ErrNotHeld)
		fails(l, redlock.ErrNotHeld)
		require.ErrorIs(t, l.Release(ctx), redlock.ErrNotHeld)
		time.Sleep(time.Second)

		l = b.Acquire(key, ttl)
		time.Sleep(time.Until(l.Until()))
		fails(l, redlock.ErrExpired)
		require.ErrorIs(t, l.Release(ctx), redlock.ErrExpired, "it is still to be released")

		l = b.Acquire(key, ttl)
		require.NoError(t, b.Redlock.Close())
		fails(l, redlock.ErrClosed)
		assert.Empty(t, b.Has(key))
	})
}

// An extension is on its way to the nodes, and another one waits behind it, when the lock is
// detached. The first counts for the handle. The second is never sent, or it would make keys live
// that the next holder may have given up.
func TestDetachSendsNoExtensionThatWaited(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Delay(50*time.Millisecond, 50*time.Millisecond)
		errs := make(chan error, 2)
		go func() { errs <- l.Extend(ctx, time.Hour) }()
		time.Sleep(10 * time.Millisecond)
		go func() { errs <- l.Extend(ctx, 2*time.Hour) }()
		time.Sleep(10 * time.Millisecond)
		b.Settle()
		var handle string
		took := virtual.Took(func() { handle = detach(b, l) })
		assert.Equal(t, 80*time.Millisecond, took, "until the first has been answered")
		for range 2 {
			assert.ErrorIs(t, <-errs, redlock.ErrDetached)
		}
		b.Delay(0, 0)
		time.Sleep(time.Second)
		for _, m := range b.Masters.All() {
			assert.Equal(t, time.Hour, m.Miniredis().TTL(key).Round(time.Hour))
		}
		info, err := redlock.ParseHandle(handle)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Hour, info.TTL, "as was last asked for")
	})
}

// A renewal is under way while the lock is detached. Its end schedules no other.
func TestDetachDuringARenewal(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		b.Settle()
		b.Delay(50*time.Millisecond, 50*time.Millisecond)
		time.Sleep(3*time.Second + 10*time.Millisecond)
		assert.Equal(t, 90*time.Millisecond, virtual.Took(func() { detach(b, l) }))
		b.Settle()
		for i := range 5 {
			b.Asked(i)
		}
		time.Sleep(9 * time.Second)
		for i := range 5 {
			assert.Empty(t, b.Asked(i))
		}
	})
}

// The lock is won on three nodes while the SETs to the two others are on their way. Another process
// releases it as soon as it has the handle. No SET may arrive after that.
func TestDetachWaitsForProposalsThatWereSent(t *testing.T) {
	for _, cfg := range []redlock.Config{{}, fencing} {
		virtual.Run(t, 5, cfg, func(b *virtual.Bed) {
			other := b.NewRedlock(cfg)
			b.Cycle(other)
			b.Warm()
			far := []*inmemory.Master{b.Masters.Master(3), b.Masters.Master(4)}
			for _, m := range far {
				m.Delay(100*time.Millisecond, 10*time.Millisecond)
			}
			l := b.Acquire(key, time.Hour)
			var handle string
			assert.Equal(t, 110*time.Millisecond, virtual.Took(func() { handle = detach(b, l) }))
			for _, m := range far {
				m.Delay(0, 0)
			}
			require.NoError(t, resume(b, other, handle, ttl).Release(ctx))
			time.Sleep(time.Second)
			assert.Empty(t, b.Has(key))
		})
	}
}

// The same for a top-up: an extension found that two nodes lack the key.
func TestDetachWaitsForTopUpsThatWereSent(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{})
		b.Cycle(other)
		b.Warm()
		l := b.Acquire(key, time.Hour)
		b.Settle()
		for _, i := range []int{3, 4} {
			b.Redis(i).Del(key)
			b.Masters.Master(i).Delay(50*time.Millisecond, 10*time.Millisecond)
		}
		require.NoError(t, l.Extend(ctx, time.Hour))
		time.Sleep(70 * time.Millisecond) // the refusals have come, and the top-ups are on their way
		var handle string
		assert.Equal(t, 50*time.Millisecond, virtual.Took(func() { handle = detach(b, l) }))
		for _, i := range []int{3, 4} {
			b.Masters.Master(i).Delay(0, 0)
		}
		require.NoError(t, resume(b, other, handle, ttl).Release(ctx))
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
	})
}

// A minority that hangs delays Detach by a NodeTimeout. What its lanes had not sent is dropped.
func TestDetachIsBoundedWhenNodesHang(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{})
		b.Cycle(other)
		b.Warm()
		b.Stall(3)
		blocker := b.Acquire("another key", time.Hour) // its SET keeps the lane of node 3 busy
		b.Settle()
		b.Stall(4)
		l := b.Acquire(key, time.Hour)
		b.Settle()
		var handle string
		assert.Equal(t, virtual.NodeTimeout, virtual.Took(func() { handle = detach(b, l) }))
		b.Resume(3, 4)
		time.Sleep(5 * time.Second)
		assert.Equal(t, []int{0, 1, 2, 4}, b.Has(key), "node 3 was not sent the SET any more")
		require.NoError(t, resume(b, other, handle, time.Hour).Release(ctx))
		require.NoError(t, blocker.Release(ctx))
		b.Settle()
		assert.Empty(t, b.Has(key))
	})
}

// The local queue goes on behind a detached lock: its next caller waits on the nodes, and gets the
// lock from the process that resumed it.
func TestDetachLetsTheLocalQueueGoOn(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		other := b.NewRedlock(redlock.Config{})
		l, err := b.Redlock.Acquire(ctx, key, time.Hour)
		require.NoError(t, err)
		got := make(chan *redlock.Lock, 1)
		go func() {
			next, err := b.Redlock.Acquire(ctx, key, time.Hour)
			assert.NoError(t, err)
			got <- next
		}()
		b.Settle()
		handle := detach(b, l)
		time.Sleep(time.Second)
		assert.Empty(t, got, "the lock lives on")
		start := time.Now()
		require.NoError(t, resume(b, other, handle, time.Hour).Release(ctx))
		next := <-got
		assert.Equal(t, start, time.Now(), "the release has woken it")
		assert.NotEqual(t, l.Value(), next.Value())
		require.NoError(t, next.Release(ctx))
	})
}

// A waiter wins on three nodes, and its queue entries stay on two where another client has the key.
// Detach gives them up, as Release does: nobody is there any more to come when it is woken.
func TestDetachGivesUpTheQueueEntries(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder := b.ReadyParty(redlock.Config{})
		waiter := b.ReadyParty(redlock.Config{})
		l := b.Hold(holder, time.Hour)
		w := waiter.Wait(key, time.Hour)
		time.Sleep(100 * time.Millisecond)
		b.Steal(key, time.Minute, 3, 4)
		require.NoError(t, l.Release(ctx))
		won := w.Hold()
		b.Settle()
		require.Len(t, b.Queued(3, key), 1)
		handle, err := won.Detach()
		require.NoError(t, err)
		b.Settle()
		b.NoQueues()
		require.NoError(t, resume(b, holder.Redlock, handle, ttl).Release(ctx))
		b.Settle()
		b.NoQueues()
	})
}

// Do releases the lock of its function. If that has given the lock away, Do cannot say that it was
// held to the end.
func TestDetachUnderDoIsAnError(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		err := b.Redlock.Do(ctx, key, ttl, func(ctx context.Context) error {
			l, ok := redlock.FromContext(ctx, key)
			require.True(t, ok)
			_, err := l.Detach()
			require.NoError(t, err)
			assert.Equal(t, redlock.ErrDetached, context.Cause(ctx))
			_, ok = redlock.FromContext(ctx, key)
			assert.False(t, ok)
			return nil
		})
		assert.ErrorIs(t, err, redlock.ErrDetached)
		b.Settle()
		assert.Len(t, b.Has(key), 3)
	})
}

func TestDetachOfAVeryLongKeyChangesNothing(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(strings.Repeat("k", 1<<20), ttl)
		handle, err := l.Detach()
		require.ErrorContains(t, err, "too long")
		assert.Less(t, len(err.Error()), 300)
		assert.Empty(t, handle)
		assert.True(t, l.Valid())
		require.NoError(t, l.Release(ctx))
	})
}

// Detach, Extend, Release, renewals and Close at once: exactly one of Detach and Release, or Close,
// ends the lock. If Detach did, the keys stay, and otherwise they go.
func TestDetachRacesWithEverything(t *testing.T) {
	for n := range 40 {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			b.Delay(time.Duration(n%4)*time.Millisecond, time.Duration(n%3)*time.Millisecond)
			l, err := b.Redlock.Acquire(ctx, key, time.Hour)
			require.NoError(t, err)
			l.KeepAlive()
			detached, released := make(chan error, 1), make(chan error, 1)
			after := func(k int, f func()) { time.AfterFunc(time.Duration(k*n%7)*time.Millisecond, f) }
			after(1, func() { _ = l.Extend(ctx, 2*time.Hour) })
			after(2, func() {
				_, err := l.Detach()
				detached <- err
			})
			after(3, func() { released <- l.Release(ctx) })
			if n%2 == 0 {
				after(5, func() { _ = b.Redlock.Close() })
			}
			detach, release := <-detached, <-released
			time.Sleep(time.Minute)
			synctest.Wait()
			if detach == nil {
				assert.Error(t, release, n)
				assert.Len(t, b.Has(key), 3, n)
			} else {
				assert.Empty(t, b.Has(key), n)
			}
		})
	}
}
