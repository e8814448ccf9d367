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

// keep acquires that many locks and renews them from then on.
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

// extensions counts the scripts that reached a master since the last call: extensions,
// and a release for each acquisition.
func extensions(b *virtual.Bed, master int) (n int) {
	for _, c := range b.Commands(master) {
		if c == "EVALSHA" || c == "EVAL" {
			n++
		}
	}
	return n
}

func TestRenewCountsWhatTakesLongerThanNodeTimeout(t *testing.T) {
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

// The extension that a hung majority had taken counts when it answers, and nothing was
// added to it meanwhile.
func TestRenewIsUnderWayOnceWhileAMajorityHangs(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		kept := keep(b, 30, 9*time.Second)
		time.Sleep(2900 * time.Millisecond)
		b.Stall(0, 1, 2)
		time.Sleep(5 * time.Second)
		for i := range 5 {
			assert.LessOrEqual(t, extensions(b, i), len(kept), "master %d", i)
		}
		for i := range 3 {
			b.Masters.Master(i).Resume()
		}
		b.Settle()
		for _, l := range kept {
			require.Greater(t, time.Until(l.Until()), 3*time.Second, "renewed by what had been sent before")
		}
		l := b.Acquire(key, ttl)
		require.NoError(t, l.Release(ctx))
		assert.Zero(t, lost(kept))
	})
}

// A caller who extends again and again while all masters hang has one extension under way,
// and none waits behind it when its caller has gone.
func TestExtendAgainAndAgainAddsNothingToWhatIsUnderWay(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := keep(b, 1, time.Minute)[0]
		b.Stall(0, 1, 2)
		for range 10 {
			require.ErrorIs(t, l.Extend(ctx, time.Minute), redlock.ErrNoQuorum)
		}
		for _, m := range b.Masters.All() {
			m.Resume()
		}
		time.Sleep(time.Second)
		for i := range 3 {
			assert.Equal(t, 1, extensions(b, i), "master %d", i)
		}
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

// slowly is a Redlock for which every master takes that long for each command.
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

// The masters spend half of their time on renewals, which are due together: the last of
// them is answered after 1.6 s. A hang of 4.5 s leaves 2.1 s: enough for each renewal once,
// not twice.
func TestRenewDoesNotCollapseWhenSlowMastersHang(t *testing.T) {
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

// Where a minority is down, the refusals of the others are all that can tell. They come
// behind the failures, with which no majority can come together any more.
func TestRenewFindsTheLossWhileAMinorityIsDown(t *testing.T) {
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

// A release that finds the same tells it: ErrNoQuorum alone would say that the lock was
// held to its end.
func TestReleaseFindsTheLossWhileAMinorityIsDown(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire(key, 9*time.Second)
		b.Settle()
		b.Masters.Kill(1)
		b.Masters.Kill(3)
		b.Steal(key, time.Hour, 0, 2, 4)
		b.Acquire("other", 9*time.Second) // finds out who is down
		b.Settle()
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		assert.ErrorIs(t, l.Release(ctx), redlock.ErrNotHeld)
	})
}
