package redlock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// proposals counts the proposals that were sent to a node.
func proposals(b *virtual.Bed, i int) (n int) {
	for _, c := range b.Masters.Master(i).Commands() {
		if len(c) == 10 && c[2] == "2" {
			n++
		}
	}
	return n
}

// Step 1: the token is the clock's microseconds, and it takes one round trip.
func TestAcquireTokenTakesOneRoundTrip(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		now := time.Now()
		var l *redlock.Lock
		assert.Equal(b, 20*time.Millisecond, virtual.Took(func() { l = b.Take(b.Redlock) }))
		assert.Equal(b, now.UnixMicro(), l.FencingToken())
		for i := range 5 {
			assert.Equal(b, l.FencingToken(), fenceOn(b, i))
			assert.Equal(b, 7*24*time.Hour, b.Redis(i).TTL(fenceKey).Round(time.Second), "the default retention")
		}
		b.Release(l)
		assert.Equal(b, now.UnixMicro(), fenceOn(b, 0), "a release keeps the fence")
	})
}

// Step 4: a client whose clock is behind proposes again at once, with the same value. It remembers
// the fence, so its next acquisition needs no second proposal.
func TestAcquireRepeatsAProposalThatIsTooLow(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		behind := fenced(b, -time.Hour)
		b.Release(b.Take(behind)) // connects
		high := b.Take(b.Redlock)
		b.Release(high)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		before := proposals(b, 0)
		var l *redlock.Lock
		start := time.Now()
		assert.Equal(b, 40*time.Millisecond, virtual.Took(func() { l = b.Take(behind) }), "two round trips")
		assert.Equal(b, before+2, proposals(b, 0))
		assert.Equal(b, high.FencingToken()+1, l.FencingToken())
		// Validity counts from the first proposal.
		assert.Equal(b, start.Add(ttl-clock.DefaultDrift.Of(ttl)).UnixNano(), l.Until().Add(time.Hour).UnixNano())
		b.Release(l)
		assert.Equal(b, 20*time.Millisecond, virtual.Took(func() { l = b.Take(behind) }), "it has seen that token")
		b.Release(l)
	})
}

// Two of five nodes know a higher token. The other three are a majority, and yet all five are asked
// again. A node whose fence is beyond all tokens is left out.
func TestAcquireProposesAgainBesideAHigherFence(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		high := time.Now().Add(time.Hour).UnixMicro()
		for i := range 2 {
			require.NoError(b, b.Redis(i).Set(fenceKey, fmt.Sprint(high+int64(i))))
		}
		for i := 2; i < 5; i++ { // the others have answered before the decision
			b.Masters.Master(i).Delay(0, time.Millisecond)
		}
		l := b.Take(b.Redlock)
		b.Settle()
		assert.Equal(b, high+2, l.FencingToken())
		for i := range 5 {
			assert.Equal(b, high+2, fenceOn(b, i))
		}
		b.Release(l)
	})
}

// A majority for an earlier proposal counts if the later proposal finds none: two of the nodes that
// granted are gone by then.
func TestAcquireKeepsAnEarlierMajority(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		b.Warm()
		high := time.Now().Add(time.Hour).UnixMicro()
		require.NoError(b, b.Redis(0).Set(fenceKey, fmt.Sprint(high)))
		b.Delay(time.Millisecond, time.Millisecond)
		b.Masters.Master(1).Delay(time.Millisecond, 2*time.Millisecond)
		b.Masters.Master(2).Delay(time.Millisecond, 2*time.Millisecond)
		now := time.Now()
		go func() {
			time.Sleep(2500 * time.Microsecond)
			b.Stall(1)
			b.Stall(2)
			b.Stall(3)
		}()
		b.Masters.Master(4).Kill()
		l := b.Take(b.Redlock) // granted by 1, 2 and 3, after 3 ms
		assert.Equal(b, now.UnixMicro(), l.FencingToken())
		for i := 1; i < 4; i++ {
			b.Masters.Master(i).Resume()
		}
		_ = l.Release(ctx)
		b.Settle()
		time.Sleep(time.Second)
		for i := range 4 {
			assert.False(b, b.Redis(i).Exists(key), "node %d", i)
		}
	})
}

// After three more proposals an attempt ends. It leaves only fences.
func TestAcquireProposesAtMostFourTimes(t *testing.T) {
	virtual.Run(t, 3, fencing, func(b *virtual.Bed) {
		b.Release(b.Take(b.Redlock))
		high := time.Now().Add(time.Hour).UnixMicro()
		var n int64
		raise := func() {
			for i := range 3 {
				require.NoError(b, b.Redis(i).Set(fenceKey, fmt.Sprint(high+n*10)))
			}
			n++
		}
		raise()
		before := proposals(b, 0)
		b.Delay(time.Millisecond, time.Millisecond)
		done := make(chan error)
		go func() {
			_, err := b.Redlock.TryAcquire(ctx, key, ttl)
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
		assert.Equal(b, before+4, proposals(b, 0))
		b.Settle()
		assert.False(b, b.Redis(0).Exists(key))
	})
}

// Another client's key is no reason to propose again, because no token would be granted.
func TestAcquireDoesNotProposeAgainForAHeldKey(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		behind := fenced(b, -time.Hour)
		l := b.Take(b.Redlock)
		b.Settle()
		before := proposals(b, 0)
		_, err := behind.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, before+1, proposals(b, 0))
		b.Release(l)
	})
}

// A re-sent proposal, as after a lost reply, changes nothing.
func TestAcquireMayResendAProposal(t *testing.T) {
	virtual.Run(t, 3, fencing, func(b *virtual.Bed) {
		l := b.Take(b.Redlock)
		b.Settle()
		client := b.Masters.Master(0).Client()
		defer client.Close()
		args := []any{l.Value(), 1, l.FencingToken(), 1000, "0"}
		before := b.Redis(0).TTL(key)
		n, err := client.Eval(ctx, script.Propose.Text, []string{key, fenceKey}, args...).Int64()
		require.NoError(b, err)
		assert.EqualValues(b, 1, n)
		assert.Equal(b, before, b.Redis(0).TTL(key), "what remains is not shortened")
		assert.Equal(b, l.FencingToken(), fenceOn(b, 0))
		b.Release(l)
	})
}

// However often an attempt proposes, it takes no longer than NodeTimeout.
func TestAcquireProposalsShareANodeTimeout(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		b.Warm()
		high := time.Now().Add(time.Hour).UnixMicro()
		b.Stall(3, 4)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		for i := range 3 { // each proposal finds another node ahead
			require.NoError(b, b.Redis(i).Set(fenceKey, fmt.Sprint(high+int64(i)*1000)))
			b.Masters.Master(i).Delay(10*time.Millisecond, time.Duration(10+50*i)*time.Millisecond)
		}
		assert.LessOrEqual(b, virtual.Took(func() { _, _ = b.Redlock.TryAcquire(ctx, key, ttl) }), virtual.NodeTimeout+time.Second/10)
	})
}

// sleepy is the clock of a process that is stopped once, right after it has read the clock.
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

// A proposal must not count if its clock was read long before it was sent. If a master forgot its
// fence, the order of tokens depends on that clock.
func TestAcquireIgnoresAnOldProposal(t *testing.T) {
	virtual.Run(t, 5, fencing, func(b *virtual.Bed) {
		clk := &sleepy{Clock: clock.System()}
		slow := b.NewRedlock(redlock.Config{Fencing: true, Clock: clk})
		b.Release(b.Take(slow))
		var later *redlock.Lock
		stand := func() {
			time.Sleep(20 * time.Second)
			later = b.Take(b.Redlock)
			b.Release(later)
			for i := range 5 {
				b.Redis(i).Del(fenceKey) // forgotten
			}
		}
		b.Settle()
		clk.sleep.Store(&stand)
		_, err := slow.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrExpired)
		b.Settle()
		assert.Empty(b, b.Has(key))
		time.Sleep(time.Microsecond)
		l := b.Take(slow)
		assert.Greater(b, l.FencingToken(), later.FencingToken())
		b.Release(l)
	})
}
