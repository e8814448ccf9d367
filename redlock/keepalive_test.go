package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Case 14: a lock is held on 3 of 5. One node restarts empty, and another client gets 3.
func TestKeepAliveNoticesTheLossOfASlimMajority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(3, 4)
		slim := b.Acquire(key, ttl)
		b.Settle()
		require.NoError(t, b.Masters.Restart(3, 4))
		require.NoError(t, b.Masters.Master(2).RestartEmpty())
		time.Sleep(2 * time.Second)
		b.Steal(key, time.Hour, 2, 3, 4)
		b.Warm() // replaces the connections that broke
		assert.ErrorIs(t, slim.Extend(ctx, ttl), redlock.ErrNotHeld)
	})
}

func TestKeepAliveRestoresTheMinority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(3, 4)
		l := b.Acquire(key, time.Hour)
		b.Settle()
		assert.Equal(t, []int{0, 1, 2}, b.Has(key))
		require.NoError(t, b.Masters.Restart(3, 4))
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Extend(ctx, time.Hour))
		b.Settle()
		assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key))
		v, _ := b.Masters.Master(4).Miniredis().Get(key)
		assert.Equal(t, l.Value(), v)
		// It now survives the loss of any two.
		b.Masters.Kill(0, 1)
		require.NoError(t, l.Extend(ctx, time.Hour))
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Equal(t, []int{0, 1}, b.Has(key), "the dead have kept theirs")
		require.NoError(t, b.Masters.Restart(0, 1))
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key), "and are asked again when they are back")
	})
}

func TestKeepAliveTopUpTakesNoForeignKey(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Steal(key, time.Hour, 4)
		l := b.Acquire(key, ttl)
		require.NoError(t, l.Extend(ctx, ttl))
		b.Settle()
		v, _ := b.Masters.Master(4).Miniredis().Get(key)
		assert.Equal(t, "somebody else", v)
		require.NoError(t, l.Release(ctx))
		b.Settle()
		assert.Equal(t, []int{4}, b.Has(key))
	})
}

func TestKeepAliveDoesNotTopUpWithoutAMajority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, time.Hour)
		b.Settle()
		b.Masters.Master(4).Miniredis().Del(key)
		b.Stall(0, 1, 2)
		require.ErrorIs(t, l.Extend(ctx, time.Hour), redlock.ErrNoQuorum)
		time.Sleep(3 * time.Second) // until the lanes give those up
		b.Settle()
		assert.NotContains(t, b.Has(key), 4)
		b.Resume(0, 1, 2)
	})
}

func TestKeepAliveRenewsAtAThirdOfTheTTL(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		l.KeepAlive() // the second call does nothing
		b.Settle()
		for i := range 5 {
			b.Asked(i)
		}
		start := time.Now()
		for n := 1; n <= 20; n++ {
			time.Sleep(time.Until(start.Add(time.Duration(n)*3*time.Second - time.Millisecond)))
			b.Settle()
			assert.Empty(t, b.Asked(0), "too early")
			time.Sleep(2 * time.Millisecond)
			b.Settle()
			assert.Equal(t, []string{"EVALSHA"}, b.Asked(0))
			assert.Equal(t, until(start.Add(time.Duration(n)*3*time.Second), 9*time.Second), l.Until())
		}
		// It continues with the last ttl that was asked for.
		require.NoError(t, l.Extend(ctx, time.Minute))
		time.Sleep(time.Hour)
		assert.NoError(t, l.Context().Err())
		assert.Greater(t, time.Until(l.Until()), 39*time.Second)
		require.NoError(t, l.Release(ctx))
	})
}

func TestKeepAliveRetriesARenewalWithoutAQuorum(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		b.Settle()
		b.Stall(0, 1, 2)
		time.Sleep(8 * time.Second)
		require.NoError(t, l.Context().Err())
		b.Resume(0, 1, 2)
		time.Sleep(time.Minute)
		assert.NoError(t, l.Context().Err(), "it came through before Until")
		require.NoError(t, l.Release(ctx))
	})
}

func TestKeepAliveReportsALoss(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		b.Settle()
		b.Steal(key, time.Hour, 0, 2, 4)
		start := time.Now()
		<-l.Context().Done()
		assert.Equal(t, 3*time.Second, time.Since(start))
		assert.Equal(t, redlock.ErrNotHeld, context.Cause(l.Context()))
	})
}

// Case 11: orphans of RedLock.net were renewed for days after their release.
func TestKeepAliveEndsWithRelease(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for range 50 {
			l := b.Acquire(key, 30*time.Millisecond)
			l.KeepAlive()
			// At about this time a renewal is under way.
			time.Sleep(10 * time.Millisecond)
			if err := l.Release(ctx); err != nil {
				require.NoError(t, err)
			}
			b.Settle()
			for i := range 5 {
				sent := b.Asked(i)
				n := len(sent)
				require.NotEmpty(t, sent)
				assert.Equal(t, "EVALSHA", sent[n-1])
			}
			assert.Empty(t, b.Has(key))
			time.Sleep(time.Second)
			for i := range 5 {
				assert.Empty(t, b.Asked(i))
			}
		}
	})
}

// An extension by an hour that finds no quorum does not delay the renewals of a lock that is valid
// for a second.
func TestKeepAliveIsNotDelayedByAFailedLongExtension(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, 900*time.Millisecond)
		l.KeepAlive()
		b.Delay(20*time.Millisecond, 20*time.Millisecond)
		time.Sleep(310 * time.Millisecond) // a renewal is under way
		c, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Extend(c, time.Hour), context.DeadlineExceeded)
		time.Sleep(10 * time.Minute)
		assert.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(ctx))
	})
}

// keep acquires so many locks and renews them from then on.
func keep(b *virtual.Bed, locks int, ttl time.Duration) []*redlock.Lock {
	b.Helper()
	kept := make([]*redlock.Lock, locks)
	for i := range kept {
		kept[i] = b.Acquire(fmt.Sprint("kept ", i), ttl)
		kept[i].KeepAlive()
	}
	b.Settle()
	for i := range b.Masters.Len() {
		b.Commands(i)
	}
	return kept
}

// lost counts the locks that have ended.
func lost(locks []*redlock.Lock) (n int) {
	for _, l := range locks {
		if l.Context().Err() != nil {
			n++
		}
	}
	return n
}

// extensions counts the scripts that reached a master since the last call. These are extensions,
// and a release for each acquisition.
func extensions(b *virtual.Bed, master int) (n int) {
	for _, c := range b.Commands(master) {
		if c == "EVALSHA" || c == "EVAL" {
			n++
		}
	}
	return n
}

func TestKeepAliveCountsVotesThatTakeLongerThanNodeTimeout(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		kept := keep(b, 30, 9*time.Second)
		b.Delay(0, 2*virtual.NodeTimeout)
		time.Sleep(time.Minute)
		assert.Zero(t, lost(kept))
		for i := range 5 {
			assert.LessOrEqual(t, extensions(b, i), 20*len(kept), "one each third of the ttl")
		}
	})
}

// The extension that reached a hung majority counts when it is answered. No other was sent
// meanwhile.
func TestKeepAliveHasOneRoundUnderWayWhileAMajorityHangs(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		kept := keep(b, 30, 9*time.Second)
		time.Sleep(2900 * time.Millisecond)
		b.Stall(0, 1, 2)
		time.Sleep(5 * time.Second)
		for i := range 5 {
			assert.LessOrEqual(t, extensions(b, i), len(kept), "master %d", i)
		}
		b.Resume(0, 1, 2)
		b.Settle()
		for _, l := range kept {
			require.Greater(t, time.Until(l.Until()), 3*time.Second, "renewed by what had been sent before")
		}
		l := b.Acquire(key, ttl)
		require.NoError(t, l.Release(ctx))
		assert.Zero(t, lost(kept))
	})
}

// slowConn is a connection to a server that takes a while for each command.
type slowConn struct {
	net.Conn
	each time.Duration
}

func (c slowConn) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(bytes.Count(p, []byte("\r\n*"))+1) * c.each)
	return c.Conn.Write(p)
}

// slowly makes a Redlock to which every master takes so long for each command.
func slowly(b *virtual.Bed, each time.Duration, cfg redlock.Config) *redlock.Redlock {
	b.Helper()
	var clients []redis.UniversalClient
	for _, m := range b.Masters.All() {
		clients = append(clients, m.Client(func(o *redis.Options) {
			dial := o.Dialer
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return slowConn{conn, each}, nil
			}
		}))
	}
	r, err := redlock.New(clients, cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close()) })
	return r
}

// The masters spend half of their time on renewals, which are all due at once: the last of them is
// answered after 1.6 s. A hang of 4.5 s leaves 2.1 s, which is enough to renew each lock once, not
// twice.
func TestKeepAliveDoesNotCollapseWhenSlowMastersHang(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		const locks, each, hang, lasts = 200, 8 * time.Millisecond, 4500 * time.Millisecond, 40 * time.Second
		b.Redlock = slowly(b, each, redlock.Config{})
		kept := keep(b, locks, 10*time.Second)
		got, hung := 0, false
		start := time.Now()
		for time.Since(start) < lasts {
			if !hung && time.Since(start) > 10*time.Second {
				hung = true
				b.Stall(0, 1, 2)
				time.Sleep(hang)
				for _, m := range b.Masters.All() {
					m.Resume()
				}
			}
			if l, err := b.Redlock.TryAcquire(ctx, key, ttl); err == nil {
				got++
				_ = l.Release(ctx) // its answer may take longer than NodeTimeout too
			}
			time.Sleep(50 * time.Millisecond)
		}
		assert.Zero(t, lost(kept))
		assert.Greater(t, got, 100, "acquisitions between the renewals")
		for i := range 3 {
			assert.LessOrEqual(t, extensions(b, i)-got, 13*locks, "one each third of the ttl")
		}
	})
}

// While a minority is down, only the refusals of the others prove the loss. They arrive after the
// failures, with which a majority is already impossible.
func TestKeepAliveFindsTheLossWhileAMinorityIsDown(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, 9*time.Second)
		l.KeepAlive()
		b.Settle()
		b.Masters.Kill(1)
		b.Masters.Kill(3)
		b.Steal(key, time.Hour, 0, 2, 4)
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		start := time.Now()
		<-l.Context().Done()
		assert.Equal(t, redlock.ErrNotHeld, context.Cause(l.Context()))
		assert.Less(t, time.Since(start), 4*time.Second)
		other := b.Acquire("other", 9*time.Second)
		b.Settle()
		b.Steal("other", time.Hour, 0, 2, 4)
		assert.ErrorIs(t, other.Extend(ctx, 9*time.Second), redlock.ErrNotHeld)
	})
}
