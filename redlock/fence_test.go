package redlock_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock"
)

const fenceKey = "redlock:fence:{" + key + "}"

var fencing = redlock.Config{Fencing: true}

func (b *bed) redis(i int) *miniredis.Miniredis { return b.masters.Master(i).Miniredis() }

// fence is what a node remembers; 0 for nothing.
func (b *bed) fence(i int) int64 {
	s, err := b.redis(i).Get(fenceKey)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(b, err)
	return n
}

// fenced is a Redlock whose clock stands offset away.
func (b *bed) fenced(offset time.Duration) *redlock.Redlock {
	return b.client(redlock.Config{Fencing: true, Clock: clock.Skewed(clock.System(), 1, offset)})
}

// proposals counts the proposals that a node was sent.
func (b *bed) proposals(i int) (n int) {
	for _, c := range b.masters.Master(i).Commands() {
		if len(c) == 10 && c[2] == "2" {
			n++
		}
	}
	return n
}

func (b *bed) take(r *redlock.Redlock) *redlock.Lock {
	b.Helper()
	l, err := r.TryAcquire(ctx, key, ttl)
	require.NoError(b, err)
	return l
}

func (b *bed) release(l *redlock.Lock) {
	b.Helper()
	require.NoError(b, l.Release(ctx))
	b.settle()
}

func TestALockWithoutFencingHasNoToken(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		l := b.take(b.lock)
		assert.Zero(b, l.FencingToken())
		b.settle()
		assert.Equal(b, []string{key}, b.redis(0).Keys(), "and nothing on the nodes but its key")
		b.release(l)
	})
}

// Clients' clocks an hour apart, in every order: each lock's token is above the last.
func TestTokensGrowWhateverTheClocksSay(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		clients := []*redlock.Redlock{b.lock, b.fenced(time.Hour), b.fenced(-time.Hour), b.fenced(3 * time.Hour)}
		last := int64(0)
		for i := range 40 {
			l := b.take(clients[(i*i+i/3)%len(clients)])
			require.Greater(b, l.FencingToken(), last)
			last = l.FencingToken()
			switch i % 3 {
			case 0:
				b.release(l)
			case 1:
				time.Sleep(ttl + time.Second) // it expires
			case 2:
				require.NoError(b, l.Extend(ctx, ttl))
				assert.Equal(b, last, l.FencingToken(), "a token is for life")
				b.release(l)
			}
		}
	})
}

// Step 1: the token is the clock's microseconds, and it takes one round trip.
func TestATokenTakesOneRoundTrip(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		b.warm()
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		now := time.Now()
		var l *redlock.Lock
		assert.Equal(b, 20*time.Millisecond, took(func() { l = b.take(b.lock) }))
		assert.Equal(b, now.UnixMicro(), l.FencingToken())
		for i := range 5 {
			assert.Equal(b, l.FencingToken(), b.fence(i))
			assert.Equal(b, 7*24*time.Hour, b.redis(i).TTL(fenceKey).Round(time.Second), "the default retention")
		}
		b.release(l)
		assert.Equal(b, now.UnixMicro(), b.fence(0), "a release keeps the fence")
	})
}

// Step 4: a client whose clock is behind proposes again at once, with the same value,
// and what it has seen spares it that the next time.
func TestAProposalThatIsTooLowIsMadeAgain(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		behind := b.fenced(-time.Hour)
		b.release(b.take(behind)) // connected
		high := b.take(b.lock)
		b.release(high)
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		before := b.proposals(0)
		var l *redlock.Lock
		start := time.Now()
		assert.Equal(b, 40*time.Millisecond, took(func() { l = b.take(behind) }), "two round trips")
		assert.Equal(b, before+2, b.proposals(0))
		assert.Equal(b, high.FencingToken()+1, l.FencingToken())
		// Validity counts from the first proposal.
		assert.Equal(b, start.Add(ttl-clock.DefaultDrift.Of(ttl)).UnixNano(), l.Until().Add(time.Hour).UnixNano())
		b.release(l)
		assert.Equal(b, 20*time.Millisecond, took(func() { l = b.take(behind) }), "it has seen that token")
		b.release(l)
	})
}

// Two of five know a higher token: the other three are a majority, and yet all are
// asked again. One node that is beyond all tokens is left out.
func TestAMajorityBesideAHigherFenceProposesAgain(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		high := time.Now().Add(time.Hour).UnixMicro()
		for i := range 2 {
			require.NoError(b, b.redis(i).Set(fenceKey, fmt.Sprint(high+int64(i))))
		}
		for i := 2; i < 5; i++ { // by the decision the others have answered
			b.masters.Master(i).Delay(0, time.Millisecond)
		}
		l := b.take(b.lock)
		b.settle()
		assert.Equal(b, high+2, l.FencingToken())
		for i := range 5 {
			assert.Equal(b, high+2, b.fence(i))
		}
		b.release(l)
	})
}

// A majority for an earlier proposal stands if the later one finds none: by then two
// of those that granted are gone.
func TestAnEarlierMajorityStands(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		b.warm()
		high := time.Now().Add(time.Hour).UnixMicro()
		require.NoError(b, b.redis(0).Set(fenceKey, fmt.Sprint(high)))
		b.delay(time.Millisecond, time.Millisecond)
		b.masters.Master(1).Delay(time.Millisecond, 2*time.Millisecond)
		b.masters.Master(2).Delay(time.Millisecond, 2*time.Millisecond)
		now := time.Now()
		go func() {
			time.Sleep(2500 * time.Microsecond)
			b.masters.Master(1).Stall()
			b.masters.Master(2).Stall()
			b.masters.Master(3).Stall()
		}()
		b.masters.Master(4).Kill()
		l := b.take(b.lock) // by 1, 2 and 3, after 3 ms
		assert.Equal(b, now.UnixMicro(), l.FencingToken())
		for i := 1; i < 4; i++ {
			b.masters.Master(i).Resume()
		}
		_ = l.Release(ctx)
		b.settle()
		time.Sleep(time.Second)
		for i := range 4 {
			assert.False(b, b.redis(i).Exists(key), "node %d", i)
		}
	})
}

// After three more proposals an attempt ends, and leaves nothing but fences.
func TestAnAttemptProposesAtMostFourTimes(t *testing.T) {
	virtually(t, 3, fencing, func(b *bed) {
		b.release(b.take(b.lock))
		high := time.Now().Add(time.Hour).UnixMicro()
		var n int64
		raise := func() {
			for i := range 3 {
				require.NoError(b, b.redis(i).Set(fenceKey, fmt.Sprint(high+n*10)))
			}
			n++
		}
		raise()
		before := b.proposals(0)
		b.delay(time.Millisecond, time.Millisecond)
		done := make(chan error)
		go func() {
			_, err := b.lock.TryAcquire(ctx, key, ttl)
			done <- err
		}()
		time.Sleep(1500 * time.Microsecond) // after the first has been executed
		for range 3 {
			raise()
			time.Sleep(2 * time.Millisecond)
		}
		err := <-done
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.ErrorContains(b, err, "has seen a token as high as the one proposed")
		assert.Equal(b, before+4, b.proposals(0))
		b.settle()
		assert.False(b, b.redis(0).Exists(key))
	})
}

// Somebody else's key is no reason to propose again: no token would do.
func TestAHeldKeyIsNotProposedForAgain(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		behind := b.fenced(-time.Hour)
		l := b.take(b.lock)
		b.settle()
		before := b.proposals(0)
		_, err := behind.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, before+1, b.proposals(0))
		b.release(l)
	})
}

// A re-sent proposal, as after a lost reply, changes nothing.
func TestAProposalMayBeSentAgain(t *testing.T) {
	virtually(t, 3, fencing, func(b *bed) {
		l := b.take(b.lock)
		b.settle()
		client := b.masters.Master(0).Client()
		defer client.Close()
		args := []any{l.Value(), 1, l.FencingToken(), 1000, "0"}
		before := b.redis(0).TTL(key)
		script, err := os.ReadFile("internal/protocol/propose.lua")
		require.NoError(b, err)
		n, err := client.Eval(ctx, string(script), []string{key, fenceKey}, args...).Int64()
		require.NoError(b, err)
		assert.EqualValues(b, 1, n)
		assert.Equal(b, before, b.redis(0).TTL(key), "what remains is not shortened")
		assert.Equal(b, l.FencingToken(), b.fence(0))
		b.release(l)
	})
}

// A fence that is not a token, or that no token is above, spoils its node and no other.
func TestASpoiltFenceSpoilsItsNodeAlone(t *testing.T) {
	for spoilt, says := range map[string]string{
		"garbage":          "the fence is not a token",
		"-7":               "the fence is not a token",
		"nan":              "the fence is not a token",
		"1e300":            "the fence is not a token",
		"9007199254740992": "the fence is not a token",
		"9007199254740991": "has a fence that no token is above",
	} {
		virtually(t, 3, fencing, func(b *bed) {
			require.NoError(b, b.redis(0).Set(fenceKey, spoilt))
			if spoilt == "9007199254740991" {
				l := b.take(b.lock)
				assert.Less(b, l.FencingToken(), time.Now().Add(time.Minute).UnixMicro())
				b.release(l)
			}
			b.masters.Kill(1)
			_, err := b.lock.TryAcquire(ctx, key, ttl)
			assert.ErrorContains(b, err, says, spoilt)
			assert.False(b, b.redis(2).Exists(key))
		})
	}
}

// Renewal refreshes the fence and a top-up brings it back, also where another client's
// attempt in vain left a higher one, which stays.
func TestRenewalAndTopUpKeepTheFence(t *testing.T) {
	virtually(t, 5, redlock.Config{Fencing: true, FenceRetention: time.Minute}, func(b *bed) {
		l := b.take(b.lock)
		b.settle()
		time.Sleep(5 * time.Second)
		high := l.FencingToken() + 1e9
		b.redis(0).FlushAll()
		b.redis(1).Del(key)
		require.NoError(b, b.redis(1).Set(fenceKey, fmt.Sprint(high)))
		b.redis(1).SetTTL(fenceKey, time.Second)
		b.redis(2).Del(fenceKey)
		require.NoError(b, l.Extend(ctx, ttl))
		b.settle()
		for i := range 5 {
			want := l.FencingToken()
			if i == 1 {
				want = high
			}
			assert.Equal(b, want, b.fence(i), "node %d", i)
			assert.Equal(b, time.Minute, b.redis(i).TTL(fenceKey), "node %d", i)
			held, _ := b.redis(i).Get(key)
			assert.Equal(b, l.Value(), held, "node %d", i)
		}
		b.release(l)
	})
}

// The fence is in the slot of its key, whatever braces that has.
func TestTheFenceIsNamedAfterTheKey(t *testing.T) {
	for name, want := range map[string]string{
		"job": "redlock:fence:{p:job}", "{a}job": "redlock:fence::p:{a}job", "a}b": "redlock:fence:{k9}p:a}b",
	} {
		virtually(t, 1, redlock.Config{Fencing: true, KeyPrefix: "p:"}, func(b *bed) {
			l, err := b.lock.TryAcquire(ctx, name, ttl)
			require.NoError(b, err)
			if name == "a}b" {
				assert.Len(b, b.redis(0).Keys(), 2)
			} else {
				assert.Contains(b, b.redis(0).Keys(), want)
			}
			require.NoError(b, l.Release(ctx))
		})
	}
}

func TestATTLAboveTheRetentionIsRefused(t *testing.T) {
	virtually(t, 1, redlock.Config{Fencing: true, FenceRetention: time.Minute}, func(b *bed) {
		_, err := b.lock.TryAcquire(ctx, key, time.Minute+1)
		assert.ErrorContains(b, err, "ttl 1m0.000000001s is above Config.FenceRetention, 1m0s")
		l := b.take(b.lock)
		assert.ErrorContains(b, l.Extend(ctx, time.Hour), "FenceRetention")
		b.release(l)
	})
}

// A clock where tokens have ended is an error that names it, and one before 1970 works.
func TestClocksFarAway(t *testing.T) {
	virtually(t, 3, fencing, func(b *bed) {
		_, err := b.fenced(290*365*24*time.Hour).TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, "Config.Clock is beyond the year 2255")
		past := b.fenced(-40 * 365 * 24 * time.Hour)
		first := b.take(past)
		assert.Positive(b, first.FencingToken())
		b.release(first)
		second := b.take(past)
		assert.Greater(b, second.FencingToken(), first.FencingToken())
		b.release(second)
	})
}

// Waiting works with tokens as without.
func TestAcquireWaitsWithFencing(t *testing.T) {
	virtually(t, 3, fencing, func(b *bed) {
		l := b.take(b.lock)
		done := make(chan *redlock.Lock)
		go func() {
			l, err := b.fenced(-time.Hour).Acquire(ctx, key, ttl)
			assert.NoError(b, err)
			done <- l
		}()
		time.Sleep(ttl / 2)
		b.release(l)
		next := <-done
		assert.Greater(b, next.FencingToken(), l.FencingToken())
		b.release(next)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		assert.NoError(b, b.lock.Do(ctx, key, ttl, func(context.Context) error { return nil }))
	})
}

// However often it proposes, an attempt takes no longer than NodeTimeout.
func TestProposalsShareANodeTimeout(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		b.warm()
		high := time.Now().Add(time.Hour).UnixMicro()
		b.stall(3, 4)
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		for i := range 3 { // each proposal finds another node ahead
			require.NoError(b, b.redis(i).Set(fenceKey, fmt.Sprint(high+int64(i)*1000)))
			b.masters.Master(i).Delay(10*time.Millisecond, time.Duration(10+50*i)*time.Millisecond)
		}
		assert.LessOrEqual(b, took(func() { _, _ = b.lock.TryAcquire(ctx, key, ttl) }), nodeTimeout+time.Second/10)
	})
}

// sleepy is the clock of a process that stands still once, right after it has read it.
type sleepy struct {
	clock.Clock
	sleep atomic.Pointer[func()]
}

func (c *sleepy) Now() time.Time {
	now := c.Clock.Now()
	if sleep := c.sleep.Swap(nil); sleep != nil {
		(*sleep)()
	}
	return now
}

// A proposal whose clock was read long before it was sent is worth nothing: with a
// master that forgot its fence, that clock is what the order rests on.
func TestAnOldProposalIsNone(t *testing.T) {
	virtually(t, 5, fencing, func(b *bed) {
		clk := &sleepy{Clock: clock.System()}
		slow := b.client(redlock.Config{Fencing: true, Clock: clk})
		b.release(b.take(slow))
		var later *redlock.Lock
		stand := func() {
			time.Sleep(20 * time.Second)
			later = b.take(b.lock)
			b.release(later)
			for i := range 5 {
				b.redis(i).Del(fenceKey) // forgotten
			}
		}
		b.settle()
		clk.sleep.Store(&stand)
		_, err := slow.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrExpired)
		b.settle()
		assert.Empty(b, b.has(key))
		time.Sleep(time.Microsecond)
		l := b.take(slow)
		assert.Greater(b, l.FencingToken(), later.FencingToken())
		b.release(l)
	})
}

// The names of what nodes keep for us are no keys.
func TestReservedKeys(t *testing.T) {
	virtually(t, 1, redlock.Config{}, func(b *bed) {
		for _, key := range []string{"redlock:server", "redlock:fence:{orders}"} {
			_, err := b.lock.TryAcquire(ctx, key, ttl)
			assert.ErrorContains(b, err, `redlock: key "`+key+`" is reserved`)
		}
		l, err := b.client(redlock.Config{KeyPrefix: "p:"}).TryAcquire(ctx, "redlock:fence:{orders}", ttl)
		require.NoError(b, err)
		b.release(l)
	})
}
