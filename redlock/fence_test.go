package redlock_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

const fenceKey = "redlock:fence:{" + key + "}"

var fencing = redlock.Config{Fencing: true}

// fenceOn returns the fence that a node remembers, or 0 if there is none.
func fenceOn(b *virtual.Bed, i int) int64 {
	s, err := b.Redis(i).Get(fenceKey)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(b, err)
	return n
}

// fenced makes a Redlock whose clock is off by offset.
func fenced(b *virtual.Bed, offset time.Duration) *redlock.Redlock {
	return b.NewRedlock(redlock.Config{Fencing: true, Clock: clock.Skewed(clock.System(), 1, offset)})
}

func TestAcquireWithoutFencingHasNoToken(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Take(b.Redlock)
		assert.Zero(b, l.FencingToken())
		b.Settle()
		assert.Equal(b, []string{key}, b.Redis(0).Keys(), "and nothing on the nodes but its key")
		b.Release(l)
	})
}

// With clients' clocks an hour apart, in every order, each lock's token is above the last.
func TestAcquireTokensGrowWithAnyClocks(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		clients := []*redlock.Redlock{b.Redlock, fenced(b, time.Hour), fenced(b, -time.Hour), fenced(b, 3*time.Hour)}
		last := int64(0)
		for i := range 40 {
			l := b.Take(clients[(i*i+i/3)%len(clients)])
			require.Greater(b, l.FencingToken(), last)
			last = l.FencingToken()
			switch i % 3 {
			case 0:
				b.Release(l)
			case 1:
				time.Sleep(ttl + time.Second) // it expires
			case 2:
				require.NoError(b, l.Extend(ctx, ttl))
				assert.Equal(b, last, l.FencingToken(), "a token is for life")
				b.Release(l)
			}
		}
	})
}

// A fence that is not a token, or above which there is no token, makes only its own node fail.
func TestAcquireLosesOnlyTheNodeOfASpoiltFence(t *testing.T) {
	for spoilt, says := range map[string]string{
		"garbage":          "the fence is not a token",
		"-7":               "the fence is not a token",
		"nan":              "the fence is not a token",
		"1e300":            "the fence is not a token",
		"9007199254740992": "the fence is not a token",
		"9007199254740991": "has a fence that no token is above",
	} {
		virtual.Run(t, 3, fencing, func(b *virtual.Bed) {
			require.NoError(b, b.Redis(0).Set(fenceKey, spoilt))
			if spoilt == "9007199254740991" {
				l := b.Take(b.Redlock)
				assert.Less(b, l.FencingToken(), time.Now().Add(time.Minute).UnixMicro())
				b.Release(l)
			}
			b.Masters.Kill(1)
			_, err := b.Redlock.TryAcquire(ctx, key, ttl)
			assert.ErrorContains(b, err, says, spoilt)
			assert.False(b, b.Redis(2).Exists(key))
		})
	}
}

// Renewal refreshes the fence, and a top-up restores it. A higher fence from another client's
// failed attempt stays.
func TestKeepAliveRenewsTheFence(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{Fencing: true, FenceRetention: time.Minute}, func(b *virtual.Bed) {
		l := b.Take(b.Redlock)
		b.Settle()
		time.Sleep(5 * time.Second)
		high := l.FencingToken() + 1e9
		b.Redis(0).FlushAll()
		b.Redis(1).Del(key)
		require.NoError(b, b.Redis(1).Set(fenceKey, fmt.Sprint(high)))
		b.Redis(1).SetTTL(fenceKey, time.Second)
		b.Redis(2).Del(fenceKey)
		require.NoError(b, l.Extend(ctx, ttl))
		b.Settle()
		for i := range 5 {
			want := l.FencingToken()
			if i == 1 {
				want = high
			}
			assert.Equal(b, want, fenceOn(b, i), "node %d", i)
			assert.Equal(b, time.Minute, b.Redis(i).TTL(fenceKey), "node %d", i)
			held, _ := b.Redis(i).Get(key)
			assert.Equal(b, l.Value(), held, "node %d", i)
		}
		b.Release(l)
	})
}

// The fence is in the slot of its key, whatever braces the key has.
func TestAcquireNamesTheFenceAfterTheKey(t *testing.T) {
	for name, want := range map[string]string{
		"job": "redlock:fence:{p:job}", "{a}job": "redlock:fence::p:{a}job", "a}b": "redlock:fence:{k9}p:a}b",
	} {
		virtual.Run(t, 1, redlock.Config{Fencing: true, KeyPrefix: "p:"}, func(b *virtual.Bed) {
			l, err := b.Redlock.TryAcquire(ctx, name, ttl)
			require.NoError(b, err)
			if name == "a}b" {
				assert.Len(b, b.Redis(0).Keys(), 2)
			} else {
				assert.Contains(b, b.Redis(0).Keys(), want)
			}
			require.NoError(b, l.Release(ctx))
		})
	}
}

func TestAcquireRefusesATTLAboveTheRetention(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{Fencing: true, FenceRetention: time.Minute}, func(b *virtual.Bed) {
		_, err := b.Redlock.TryAcquire(ctx, key, time.Minute+1)
		assert.ErrorContains(b, err, "ttl 1m0.000000001s is above Config.FenceRetention, 1m0s")
		l := b.Take(b.Redlock)
		assert.ErrorContains(b, l.Extend(ctx, time.Hour), "FenceRetention")
		b.Release(l)
	})
}

// A clock beyond the last token gives an error that names the clock. A clock before 1970 works.
func TestAcquireTokensOfClocksFarAway(t *testing.T) {
	virtual.Run(t, 3, fencing, func(b *virtual.Bed) {
		_, err := fenced(b, 290*365*24*time.Hour).TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "Config.Clock is beyond the year 2255")
		past := fenced(b, -40*365*24*time.Hour)
		first := b.Take(past)
		assert.Positive(b, first.FencingToken())
		b.Release(first)
		second := b.Take(past)
		assert.Greater(b, second.FencingToken(), first.FencingToken())
		b.Release(second)
	})
}

// Waiting works with tokens as it does without.
func TestAcquireWaitsWithFencing(t *testing.T) {
	virtual.Run(t, 3, fencing, func(b *virtual.Bed) {
		l := b.Take(b.Redlock)
		done := make(chan *redlock.Lock)
		go func() {
			l, err := fenced(b, -time.Hour).Acquire(ctx, key, ttl)
			assert.NoError(b, err)
			done <- l
		}()
		time.Sleep(ttl / 2)
		b.Release(l)
		next := <-done
		assert.Greater(b, next.FencingToken(), l.FencingToken())
		b.Release(next)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		assert.NoError(b, b.Redlock.Do(ctx, key, ttl, func(context.Context) error { return nil }))
	})
}

// The names under which nodes store our data cannot be keys.
func TestAcquireRefusesReservedKeys(t *testing.T) {
	virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
		for _, key := range []string{"redlock:server", "redlock:fence:{orders}"} {
			_, err := b.Redlock.TryAcquire(ctx, key, ttl)
			assert.ErrorContains(b, err, `redlock: key "`+key+`" is reserved`)
		}
		l, err := b.NewRedlock(redlock.Config{KeyPrefix: "p:"}).TryAcquire(ctx, "redlock:fence:{orders}", ttl)
		require.NoError(b, err)
		b.Release(l)
	})
}

// A client with a shorter FenceRetention shortens no other client's fence, whether it is granted,
// refused, renews, or waits. Nor does it make a fence expire that is kept for ever.
func TestAcquireNeverShortensAFence(t *testing.T) {
	const long, short = 24 * time.Hour, time.Minute
	for _, fair := range []bool{false, true} {
		for what, offset := range map[string]time.Duration{"granted": 0, "too low at first": -time.Hour} {
			t.Run(fmt.Sprintf("%s, fair %t", what, fair), func(t *testing.T) {
				virtual.Run(t, 3, redlock.Config{Fencing: true, FenceRetention: long}, func(b *virtual.Bed) {
					hasty := b.NewRedlock(redlock.Config{
						Fencing: true, FenceRetention: short, Fair: fair, Clock: clock.Skewed(clock.System(), 1, offset),
					})
					b.Release(b.Take(b.Redlock))
					require.NoError(b, b.Redis(2).Set(fenceKey, "5")) // kept for ever
					kept := func(when string) {
						b.Helper()
						b.Settle()
						for i, want := range []time.Duration{long, long, 0} {
							assert.Equal(b, want, b.Redis(i).TTL(fenceKey).Round(time.Minute), "%s, node %d", when, i)
						}
					}
					time.Sleep(time.Millisecond)
					l := b.Take(hasty)
					kept("acquired")
					require.NoError(b, l.Extend(ctx, ttl))
					kept("extended")
					b.Redis(0).Del(key)
					require.NoError(b, l.Extend(ctx, ttl))
					kept("topped up")
					done := make(chan *redlock.Lock)
					go func() {
						l, err := hasty.Acquire(ctx, key, ttl)
						assert.NoError(b, err)
						done <- l
					}()
					time.Sleep(100 * time.Millisecond)
					b.Release(l)
					l = <-done
					kept("waited")
					b.Release(l)
					kept("released")
				})
			})
		}
	}
}

// Tokens grow for as long as the longest retention of any client, however many clients with shorter
// ones use the key.
func TestAcquireTokensGrowBesideAShorterRetention(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true, FenceRetention: 24 * time.Hour}, func(b *virtual.Bed) {
		hasty := b.NewRedlock(redlock.Config{Fencing: true, FenceRetention: time.Minute})
		high := b.Take(fenced(b, 3*time.Hour))
		b.Release(high)
		l := b.Take(hasty)
		require.Greater(b, l.FencingToken(), high.FencingToken())
		b.Release(l)
		time.Sleep(2 * time.Minute) // longer than the shorter retention
		next := b.Take(b.Redlock)
		assert.Greater(b, next.FencingToken(), l.FencingToken())
		b.Release(next)
	})
}
