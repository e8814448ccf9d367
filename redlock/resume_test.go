package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// handOver locks the key for an hour, and returns the handle of the detached lock and its value.
func handOver(b *virtual.Bed) (handle, value string) {
	b.Helper()
	l := b.Acquire(key, time.Hour)
	b.Settle()
	return detach(b, l), l.Value()
}

func TestResumeGoesOnWithTheLock(t *testing.T) {
	for _, cfg := range []redlock.Config{{}, {KeyPrefix: "app:"}, {Fencing: true}, {Fair: true}, virtual.Guarded} {
		virtual.Run(t, 5, cfg, func(b *virtual.Bed) {
			if cfg.RestartGuard > 0 {
				time.Sleep(virtual.Quarantine)
			}
			other := b.NewRedlock(cfg)
			if cfg.Fair || cfg.KeyPrefix != "" || cfg.Fencing || cfg.RestartGuard == 0 {
				b.Warm()
			}
			l := b.Acquire(key, ttl)
			b.Settle()
			handle := detach(b, l)
			time.Sleep(ttl / 2)
			require.NoError(t, other.Do(ctx, "connects", ttl, func(context.Context) error { return nil }))

			b.Delay(10*time.Millisecond, 10*time.Millisecond)
			start := time.Now()
			type name struct{}
			next, err := other.Resume(context.WithValue(ctx, name{}, "value"), handle, ttl)
			require.NoError(t, err)
			assert.Equal(t, 20*time.Millisecond, time.Since(start), "one round trip")
			assert.Equal(t, until(start, ttl), next.Until(), "from before it was sent")
			assert.Equal(t, l.Value(), next.Value())
			assert.Equal(t, l.FencingToken(), next.FencingToken())
			assert.Equal(t, cfg.Fencing, next.FencingToken() != 0)
			assert.Equal(t, key, next.Key())
			assert.True(t, next.Valid())
			assert.Equal(t, "value", next.Context().Value(name{}))
			carried, ok := redlock.FromContext(next.Context(), key)
			assert.True(t, ok)
			assert.Same(t, next, carried)
			assert.Equal(t, redlock.ErrDetached, context.Cause(l.Context()), "the first holder has no part in it")
			b.Delay(0, 0)

			_, err = b.Redlock.TryAcquire(ctx, key, ttl)
			require.ErrorIs(t, err, redlock.ErrHeld)
			next.KeepAlive()
			time.Sleep(10 * ttl)
			require.NoError(t, next.Context().Err(), "it is renewed")
			require.NoError(t, next.Release(ctx))
			time.Sleep(time.Second)
			assert.Empty(t, b.Has(cfg.KeyPrefix+key))
			b.Release(b.Acquire(key, ttl))
		})
	}
}

// Until is ttl from now, less the drift. The keys may live longer: they are never cut short.
func TestResumeNeverShortens(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		handle, _ := handOver(b)
		start := time.Now()
		next := resume(b, b.Redlock, handle, time.Second)
		assert.Equal(t, until(start, time.Second), next.Until())
		b.Settle()
		for _, m := range b.Masters.All() {
			assert.Equal(t, time.Hour, m.Miniredis().TTL(key))
		}
		time.Sleep(time.Second)
		assert.Equal(t, redlock.ErrExpired, context.Cause(next.Context()), "this process knows no more")
		next = resume(b, b.Redlock, handle, time.Hour)
		b.Release(next)
	})
}

// Nobody else's key is extended or deleted, and no key is made.
func TestResumeOfALockThatIsGone(t *testing.T) {
	for name, ends := range map[string]func(b *virtual.Bed, handle string){
		"released":      func(b *virtual.Bed, handle string) { b.Release(resume(b, b.Redlock, handle, ttl)) },
		"expired":       func(*virtual.Bed, string) { time.Sleep(time.Hour) },
		"taken over":    func(b *virtual.Bed, _ string) { b.Steal(key, ttl, 0, 1, 2, 3, 4) },
		"on a minority": func(b *virtual.Bed, _ string) { b.Steal(key, ttl, 0, 2, 4) },
		"another's lock": func(b *virtual.Bed, handle string) {
			b.Release(resume(b, b.Redlock, handle, ttl))
			b.Acquire(key, ttl)
			b.Settle()
		},
	} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			handle, value := handOver(b)
			ends(b, handle)
			before := fmt.Sprint(keysOf(b))
			_, err := b.NewRedlock(redlock.Config{}).Resume(ctx, handle, ttl)
			require.ErrorIs(t, err, redlock.ErrNotHeld, name)
			var failed *redlock.QuorumError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "resume", failed.Op)
			assert.NotErrorIs(t, err, redlock.ErrNoQuorum)
			assert.NotContains(t, err.Error(), value)
			b.Settle()
			assert.Equal(t, before, fmt.Sprint(keysOf(b)), name)
		})
	}
}

// keysOf lists what the masters have under the key, and for how long.
func keysOf(b *virtual.Bed) (all []string) {
	for _, m := range b.Masters.All() {
		value, _ := m.Miniredis().Get(key)
		all = append(all, value, m.Miniredis().TTL(key).String())
	}
	return all
}

// Two of five masters are down, hang, have restarted empty, or have another client's key.
func TestResumeWithoutAMinority(t *testing.T) {
	for name, fault := range map[string]func(b *virtual.Bed){
		"down":      func(b *virtual.Bed) { b.Masters.Kill(1, 3) },
		"hung":      func(b *virtual.Bed) { b.Stall(1, 3) },
		"restarted": func(b *virtual.Bed) { restartEmpty(b, 1, 3) },
		"stolen":    func(b *virtual.Bed) { b.Steal(key, time.Hour, 1, 3) },
	} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			handle, value := handOver(b)
			fault(b)
			other := b.NewRedlock(redlock.Config{})
			next := resume(b, other, handle, time.Hour)
			assert.Equal(t, value, next.Value(), name)
			b.Settle()
			b.Resume(1, 3)
			switch name {
			case "restarted":
				assert.Len(t, b.Has(key), 5, "the lock has grown to all masters again")
			case "down":
				require.NoError(t, b.Masters.Restart(1, 3))
			}
			time.Sleep(5 * time.Second)
			require.NoError(t, next.Release(ctx), name)
			time.Sleep(5 * time.Second)
			if name == "stolen" {
				assert.Equal(t, []int{1, 3}, b.Has(key))
			} else {
				assert.Empty(t, b.Has(key), name)
			}
		})
	}
}

// A process may resume a lock only to prolong it, and hand it on at once. Masters that lack the key
// get it all the same.
func TestResumeAndDetachAtOnceRestoresTheMinority(t *testing.T) {
	for name, connect := range map[string]bool{"first operation": false, "connected": true} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			handle, _ := handOver(b)
			restartEmpty(b, 1, 3)
			other := b.NewRedlock(redlock.Config{})
			if connect {
				require.NoError(t, other.Do(ctx, "connects", ttl, func(context.Context) error { return nil }))
				b.Settle()
				b.Delay(10*time.Millisecond, 10*time.Millisecond)
			}
			next := resume(b, other, handle, time.Hour)
			took := virtual.Took(func() { handle = detach(b, next) })
			if connect {
				assert.Equal(t, 20*time.Millisecond, took, "a round trip for the top-up")
			}
			assert.Len(t, b.Has(key), 5, name)
			b.Delay(0, 0)
			b.Release(resume(b, b.Redlock, handle, ttl))
			time.Sleep(time.Second) // its connections to the restarted masters had broken
			assert.Empty(t, b.Has(key))
		})
	}
}

func restartEmpty(b *virtual.Bed, which ...int) {
	b.Masters.Kill(which...)
	for _, i := range which {
		require.NoError(b, b.Masters.Master(i).RestartEmpty())
	}
}

// Nothing is taken for granted without a majority, and the handle can be used again.
func TestResumeWithoutAQuorumCanBeRepeated(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		handle, _ := handOver(b)
		b.Redis(4).Del(key)
		b.Masters.Kill(0, 1, 2)
		_, err := b.Redlock.Resume(ctx, handle, ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrNotHeld)
		assert.ErrorContains(t, err, `resume "orders"`)
		require.NoError(t, b.Masters.Restart(0, 1, 2))
		time.Sleep(time.Second)
		assert.NotContains(t, b.Has(key), 4, "no key was made without a majority")
		b.Release(resume(b, b.Redlock, handle, ttl))
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
	})
}

func TestResumeThatIsAnsweredTooLateHoldsNothing(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{NodeTimeout: time.Minute}, func(b *virtual.Bed) {
		handle, _ := handOver(b)
		b.Redis(2).Del(key)
		b.Delay(0, time.Second)
		_, err := b.Redlock.Resume(ctx, handle, time.Second)
		require.ErrorIs(t, err, redlock.ErrExpired)
		b.Delay(0, 0)
		time.Sleep(5 * time.Second)
		assert.Equal(t, []int{0, 1}, b.Has(key), "and takes no further key")
		b.Release(resume(b, b.Redlock, handle, ttl))
	})
}

func TestResumeEndsWithItsContext(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		handle, _ := handOver(b)
		why := errors.New("no time")
		b.Delay(50*time.Millisecond, 50*time.Millisecond)
		c, cancel := context.WithTimeoutCause(ctx, 20*time.Millisecond, why)
		defer cancel()
		start := time.Now()
		_, err := b.Redlock.Resume(c, handle, ttl)
		assert.Equal(t, 20*time.Millisecond, time.Since(start))
		require.ErrorIs(t, err, why)
		for _, other := range []error{redlock.ErrNoQuorum, redlock.ErrNotHeld, redlock.ErrExpired} {
			assert.NotErrorIs(t, err, other)
		}
		b.Delay(0, 0)
		time.Sleep(time.Second)
		for i := range 5 {
			b.Commands(i)
		}
		_, err = b.Redlock.Resume(c, handle, ttl)
		require.ErrorIs(t, err, why)
		b.Settle()
		assert.Empty(t, b.Commands(0), "nobody was asked")
		b.Release(resume(b, b.Redlock, handle, ttl))
	})
}

// The lock was acquired for an hour and resumed for a second. The release must be repeated for as
// long as a key of the hour may live.
func TestResumeKnowsHowLongKeysMayLive(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		handle, _ := handOver(b)
		time.Sleep(time.Minute)
		handle = detach(b, resume(b, b.Redlock, handle, 5*time.Second)) // each handle passes it on
		next := resume(b, b.Redlock, handle, time.Second)
		b.Settle()
		b.Masters.Kill(4)
		require.NoError(t, next.Release(ctx))
		time.Sleep(30 * time.Minute)
		require.NoError(t, b.Masters.Restart(4)) // with its key
		require.Len(t, b.Has(key), 1)
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key))
	})
}

// The token is the same, and the next holder's is higher, also if this client's clock is behind.
func TestResumeCarriesTheFencingToken(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		behind := fenced(b, -time.Hour)
		b.Release(b.Take(behind)) // connects
		l := b.Take(b.Redlock)
		b.Settle()
		handle := detach(b, l)
		b.Redis(4).FlushAll()
		next := resume(b, behind, handle, ttl)
		assert.Equal(t, l.FencingToken(), next.FencingToken())
		b.Settle()
		assert.Equal(t, l.FencingToken(), fenceOn(b, 4), "the top-up has brought the fence with it")
		b.Release(next)
		before := proposals(b, 0)
		after := b.Take(behind)
		assert.Greater(t, after.FencingToken(), l.FencingToken())
		b.Settle() // three masters decide, and the first may be one of the others
		assert.Equal(t, before+1, proposals(b, 0), "it has learned the token from the handle")
	})
}

// A mistake with the handle or with an argument asks no node, and the error does not quote it.
func TestResumeRefusesWhatItCannotUse(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{KeyPrefix: "app:", RestartGuard: time.Minute}, func(b *virtual.Bed) {
		time.Sleep(2 * time.Minute)
		l := b.Acquire(key, ttl)
		b.Settle()
		handle := detach(b, l)
		for i := range 5 {
			b.Commands(i)
		}
		secret := strings.TrimPrefix(handle, "redlock1.")
		for _, tc := range []struct {
			cfg    redlock.Config
			handle string
			ttl    time.Duration
			want   string
		}{
			{handle: "", want: "redlock: handle is empty"},
			{handle: "garbage", want: "redlock: handle is not one that Detach has made"},
			{handle: l.Value(), want: "redlock: handle is not one that Detach has made"},
			{handle: "redlock2." + secret, want: "redlock: handle has a format that this version of the library does not know"},
			{handle: handle[:len(handle)-1], want: "redlock: handle is damaged or incomplete"},
			{handle: handle + "\n", want: "redlock: handle is damaged or incomplete"},
			{handle: strings.Replace(handle, secret[:4], "AAAA", 1), want: "redlock: handle is damaged or incomplete"},
			{handle: strings.Repeat(handle, 1000), want: "redlock: handle is too long"},
			{handle: handle, cfg: redlock.Config{}, want: `redlock: handle is of a Redlock with another Config.KeyPrefix than ""`},
			{handle: handle, cfg: redlock.Config{KeyPrefix: "app"}, want: `with another Config.KeyPrefix than "app"`},
			{handle: handle, cfg: redlock.Config{KeyPrefix: "app:", Fencing: true}, want: "redlock: handle has no fencing token, and Config.Fencing is set"},
			{handle: handle, cfg: redlock.Config{KeyPrefix: "app:"}, ttl: time.Millisecond, want: "redlock: ttl 1ms is below 10ms"},
			{handle: handle, cfg: redlock.Config{KeyPrefix: "app:", RestartGuard: time.Minute}, ttl: time.Hour, want: "ttl 1h0m0s is above Config.RestartGuard"},
		} {
			if tc.ttl == 0 {
				tc.ttl = ttl
			}
			r := b.NewRedlock(tc.cfg)
			got, err := r.Resume(ctx, tc.handle, tc.ttl)
			require.ErrorContains(t, err, tc.want)
			assert.Nil(t, got)
			assert.NotContains(t, err.Error(), l.Value())
			assert.NotContains(t, err.Error(), secret[10:20])
			b.Settle()
			for i := range 5 {
				assert.Empty(t, b.Commands(i))
			}
		}
		closed := b.NewRedlock(redlock.Config{KeyPrefix: "app:"})
		require.NoError(t, closed.Close())
		_, err := closed.Resume(ctx, handle, ttl)
		assert.ErrorIs(t, err, redlock.ErrClosed)
		var noContext context.Context
		_, err = b.Redlock.Resume(noContext, handle, ttl)
		assert.ErrorContains(t, err, "ctx is nil")
		_, err = new(redlock.Redlock).Resume(ctx, handle, ttl)
		assert.ErrorContains(t, err, "not made by New or Open")
		_, err = (*redlock.Redlock)(nil).Resume(ctx, handle, ttl)
		assert.ErrorContains(t, err, "not made by New or Open")
	})
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		handle := detach(b, b.Acquire(key, ttl))
		_, err := b.NewRedlock(redlock.Config{}).Resume(ctx, handle, ttl)
		assert.ErrorContains(t, err, "redlock: handle has a fencing token, and Config.Fencing is not set")
	})
}

// Votes that a restart guard does not count prove nothing: servers that were restarted may have
// forgotten the key.
func TestResumeDoesNotCountQuarantinedVotes(t *testing.T) {
	virtual.Run(t, 5, virtual.Guarded, func(b *virtual.Bed) {
		time.Sleep(virtual.Quarantine)
		l := b.Acquire(key, ttl)
		b.Settle()
		handle := detach(b, l)
		b.Masters.Kill(0, 1, 2)
		require.NoError(t, b.Masters.Restart(0, 1, 2)) // with their keys, which nobody can know
		_, err := b.NewRedlock(virtual.Guarded).Resume(ctx, handle, ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.ErrorContains(t, err, "quarantined")
	})
}

// A Resume may be a Redlock's first operation. It finds one server that is listed as two nodes.
func TestResumeFindsADuplicateNode(t *testing.T) {
	virtual.Run(t, 2, redlock.Config{}, func(b *virtual.Bed) {
		first := b.Masters.Master(0)
		twice, err := redlock.New([]redis.UniversalClient{first.Client(), b.Masters.Master(1).Client(), first.Client()}, redlock.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, twice.Close()) }()
		l := b.Acquire(key, ttl)
		b.Settle()
		_, err = twice.Resume(ctx, detach(b, l), ttl)
		require.ErrorIs(t, err, redlock.ErrDuplicateNode)
	})
}

func TestParseHandleTellsNoSecret(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{KeyPrefix: "app:", Fencing: true}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl)
		info, err := redlock.ParseHandle(detach(b, l))
		require.NoError(t, err)
		assert.Equal(t, redlock.HandleInfo{Key: key, KeyPrefix: "app:", FencingToken: l.FencingToken(), TTL: ttl}, info)
		assert.NotContains(t, fmt.Sprintf("%#v", info), l.Value())
		_, err = redlock.ParseHandle("garbage")
		assert.ErrorContains(t, err, "redlock: handle is not one that Detach has made")
	})
}
