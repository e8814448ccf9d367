package realtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

func (f *fleet) kill(which ...int) {
	for _, i := range which {
		f.servers[i].Kill()
	}
}

// restart restarts killed masters without memory.
func (f *fleet) restart(which ...int) {
	f.Helper()
	for _, i := range which {
		require.NoError(f, f.servers[i].Restart())
	}
}

// After SIGKILL of two of five masters, locks are still granted, renewed and released. Case 9: a
// minority's error is no failure.
func TestRealAcquireWithTwoOfFiveKilled(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{})
	held := f.acquire(r, "held", ttl)
	kept := f.acquire(r, "kept", 900*time.Millisecond)
	kept.KeepAlive()
	f.kill(1, 3)

	f.cycle(r, key)
	require.NoError(t, held.Extend(f.ctx, ttl))
	require.NoError(t, f.release(held))
	first := kept.Until()
	f.eventually("it is renewed twice", func() bool {
		return kept.Until().After(first.Add(300*time.Millisecond)) || kept.Context().Err() != nil
	})
	require.NoError(t, kept.Context().Err())
	require.NoError(t, f.release(kept))
	for _, k := range []string{key, "held", "kept"} {
		f.gone(k, 0, 2, 4)
	}
}

// After SIGKILL of three masters, operations return ErrNoQuorum and leave nothing on the survivors.
// Everything works as before when the masters are back. go-redis dials five times before it reports
// the first refused dial, and the NodeTimeout is longer than that. A step that waited for that
// report would say "no answer" here.
func TestRealAcquireWithThreeOfFiveKilledAndBack(t *testing.T) {
	f := startFleet(t, 5)
	r := f.redlock(redlock.Config{NodeTimeout: 2 * time.Second})
	f.cycle(r, "warm up")
	held := f.hold(r, "held")
	f.kill(0, 2, 4)

	for range 3 { // the first attempt finds broken connections, the others none
		_, err := r.TryAcquire(f.ctx, key, ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.NotContains(t, fmt.Sprint(err), "no answer within")
		var failed *redlock.QuorumError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, 3, failed.Need)
		for _, i := range []int{0, 2, 4} {
			assert.Contains(t, fmt.Sprint(err), f.servers[i].Addr())
		}
		f.gone(key, 1, 3)
	}
	err := held.Extend(f.ctx, time.Hour)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.NotErrorIs(t, err, redlock.ErrNotHeld)
	assert.NoError(t, held.Context().Err(), "it goes on until Until")
	err = f.release(held)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	f.gone("held", 1, 3)

	f.restart(0, 2, 4)
	l, err := r.Acquire(f.ctx, key, ttl)
	require.NoError(t, err)
	require.NoError(t, f.release(l))
	f.allGrantAgain(r, "back")
	f.gone(key)
	f.gone("back")
}

// A minority comes back empty. An Extend or a renewal restores the lock there. The lock can then
// lose another two masters (case 14).
func TestRealExtendRestoresALockOnAllFive(t *testing.T) {
	for name, lengthen := range map[string]func(*fleet, *redlock.Lock){
		"extend": func(f *fleet, l *redlock.Lock) { require.NoError(f, l.Extend(f.ctx, ttl)) },
		"renew":  func(f *fleet, l *redlock.Lock) { l.KeepAlive() },
	} {
		t.Run(name, func(t *testing.T) {
			f := startFleet(t, 5)
			r := f.redlock(redlock.Config{})
			l := f.acquire(r, key, 1500*time.Millisecond) // two renewals find the loss in time
			lengthen(f, l)
			f.onAll(key, l)
			f.restart(3, 4)
			f.eventually("all five have it", func() bool {
				lengthen(f, l)
				return len(f.has(key)) == 5
			})
			f.onAll(key, l)

			f.kill(0, 1)
			require.NoError(t, l.Extend(f.ctx, ttl))
			require.NoError(t, f.release(l))
			f.gone(key, 2, 3, 4)
		})
	}
}
