package wakeup_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A forged message costs a renewal, and the lock goes on.
func TestKeepAliveSurvivesAForgedMessage(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder := b.ReadyParty(redlock.Config{})
		l := kept(holder)
		tape := b.Record(holder)
		assert.Equal(b, 3, say(b, spy.Broken(l.Value()), 0, 1, 2))
		b.Settle()
		assert.Equal(b, map[string]int{"extend": 5}, virtual.WithoutPings(tape.Count())[holder.Name])
		time.Sleep(time.Second)
		assert.NoError(b, l.Context().Err())
		assert.Empty(b, virtual.WithoutPings(tape.Count()), "once")

		say(b, spy.Broken(l.Value()), 2)
		time.Sleep(virtual.NodeTimeout - time.Millisecond)
		assert.Empty(b, virtual.WithoutPings(tape.Count()), "a majority may have it")
		time.Sleep(time.Millisecond)
		b.Settle()
		assert.Equal(b, map[string]int{"extend": 5}, virtual.WithoutPings(tape.Count())[holder.Name])

		for _, other := range []string{
			spy.Broken("somebody else's"), "broken", "broken ", "broken " + l.Value(), spy.Broken(l.Value()) + "0",
			spy.Broken(l.Value())[:20], "broken \x00", "", "0 " + key, "1 ", " ", fmt.Sprintf("%01000000d", 1),
		} {
			say(b, other, 0, 1, 2, 3, 4)
		}
		time.Sleep(time.Second)
		assert.Equal(b, []int{0, 1, 2, 3, 4}, b.Has(key))
		b.Release(l)
		for _, sent := range tape.Sent {
			assert.NotEqual(b, "extend", sent.What)
		}
	})
}

// A flood of messages about a lock makes it renew twenty times a second, and no more. Messages
// about other locks cost no command at all.
func TestKeepAliveRenewsInBoundsUnderAFloodOfMessages(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder := b.ReadyParty(redlock.Config{})
		l := kept(holder)
		tape := b.Record(holder)
		for range 2000 {
			say(b, spy.Broken(l.Value()), 0, 1, 2)
			time.Sleep(time.Millisecond)
		}
		b.Settle()
		extends := virtual.WithoutPings(tape.Count())[holder.Name]["extend"]
		assert.Greater(b, extends, 3*30)
		assert.LessOrEqual(b, extends, 3*41)
		assert.NoError(b, l.Context().Err())
		for n := range 2000 {
			say(b, spy.Broken(fmt.Sprint(n)), 0, 1, 2)
		}
		time.Sleep(time.Second)
		assert.Empty(b, virtual.WithoutPings(tape.Count()))
		b.Release(l)
	})
}

// A message about a lock that was released meanwhile, and whose successor is held, has no effect.
func TestKeepAliveIgnoresALateMessage(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder := b.ReadyParty(redlock.Config{})
		first := kept(holder)
		value := first.Value()
		b.Release(first)
		second := kept(holder)
		tape := b.Record(holder)
		assert.Equal(b, 3, say(b, spy.Broken(value), 0, 1, 2))
		time.Sleep(time.Second)
		assert.Empty(b, virtual.WithoutPings(tape.Count()))
		assert.NoError(b, second.Context().Err())
		b.Release(second)
	})
}

// A lock that is held for a short time, or that is not renewed, costs nothing extra: nobody
// subscribes, and the only commands are those of an acquisition and a release.
func TestAcquireOfAShortLockSubscribesNowhere(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		tape := b.Record(p)
		for range 10 {
			l := b.Hold(p, longTTL)
			l.KeepAlive()
			time.Sleep(longTTL/3 - time.Millisecond)
			b.Release(l)
		}
		assert.Equal(b, map[string]int{"SET": 30, "release": 30}, tape.Count()[p.Name])
		l := b.Hold(p, longTTL)
		time.Sleep(longTTL - time.Second)
		b.Release(l)
		assert.Equal(b, map[string]int{"SET": 3, "release": 3}, tape.Count()[p.Name])
	})
}

// For locks that are held for longer there is one subscription on each node, however many locks
// there are. It ends ten seconds after the last of them. Every five seconds a PING checks that it
// lives.
func TestKeepAliveSubscribesOncePerNode(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		tape := b.Record(p)
		var kept []*redlock.Lock
		for n := range 20 {
			l, err := p.TryAcquire(ctx, fmt.Sprint("key ", n), longTTL)
			require.NoError(b, err)
			l.KeepAlive()
			kept = append(kept, l)
		}
		time.Sleep(10 * time.Minute)
		count := tape.Count()[p.Name]
		assert.Equal(b, 3, count["SUBSCRIBE"])
		assert.InDelta(b, 3*590/5, count["PING"], 6)
		for _, l := range kept[1:] {
			b.Release(l)
		}
		time.Sleep(time.Minute)
		for i := range 3 {
			assert.Equal(b, []string{spy.BrokenChannel}, b.Redis(i).PubSubChannels(""))
		}
		b.Release(kept[0])
		time.Sleep(9 * time.Second)
		for i := range 3 {
			assert.Len(b, b.Redis(i).PubSubChannels(""), 1)
		}
		time.Sleep(11 * time.Second)
		for i := range 3 {
			assert.Empty(b, b.Redis(i).PubSubChannels(""))
		}
		assert.Zero(b, tape.Count()[p.Name]["SUBSCRIBE"])
	})
}

// Waits and kept locks share the connections, and neither ends the other's. A wait does not ask for
// its queue entry again because of a lock.
func TestKeepAliveSharesSubscriptionsWithWaits(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		operator, other, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		l, err := p.TryAcquire(ctx, "kept", longTTL)
		require.NoError(b, err)
		l.KeepAlive()
		held := b.Hold(other, time.Hour)
		w := p.Wait(key, longTTL)
		time.Sleep(longTTL/3 - time.Second)
		tape := b.Record(p)
		time.Sleep(2 * time.Second)
		counts := tape.Count()[p.Name]
		assert.Equal(b, 3, counts["SUBSCRIBE"], "a channel more on the same connections")
		assert.LessOrEqual(b, counts["enqueue"], 1, "a look at the most")
		for i := range 3 {
			assert.Len(b, b.Redis(i).PubSubChannels(""), 2)
		}
		b.Release(held)
		b.Release(w.Hold())
		time.Sleep(time.Minute)
		i, err := operator.Inspect(ctx, "kept")
		require.NoError(b, err)
		assert.Zero(b, noticed(b, operator, i, l), "the end of the waits did not end the listening")
		_ = l.Release(ctx)

		held = b.Hold(other, time.Hour)
		w = p.Wait(key, longTTL)
		time.Sleep(time.Minute)
		b.Release(held)
		began := time.Now()
		b.Release(w.Hold())
		assert.Equal(b, began, w.Got, "nor the end of the locks")
		b.NoQueues()
	})
}

// A broken subscription is restored.
func TestKeepAliveRestoresABrokenSubscription(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder := b.ReadyParty(redlock.Config{})
		l := kept(holder)
		for _, m := range b.Masters.All() {
			m.BreakSubscriptions()
		}
		time.Sleep(2 * time.Second)
		i := b.Inspect(b.Redlock)
		began := time.Now()
		b.ForceRelease(i, 0, 1, 2)
		<-l.Context().Done()
		assert.Equal(b, began, time.Now())
		_ = l.Release(ctx)
	})
}

// A kept lock is renewed as usual even if no node permits a subscription, and nothing is logged
// about it.
func TestKeepAliveWithoutSubscriptions(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var log spy.Log
		holder := b.ReadyParty(redlock.Config{Logger: log.Logger()})
		for _, m := range b.Masters.All() {
			m.RefuseSubscriptions("NOPERM this user has no permissions to run the 'subscribe' command")
		}
		l := kept(holder)
		time.Sleep(5 * time.Minute)
		assert.NoError(b, l.Context().Err())
		assert.Zero(b, log.Says("\n"))

		other := b.ReadyParty(redlock.Config{})
		held, err := other.TryAcquire(ctx, "other", time.Hour)
		require.NoError(b, err)
		w := holder.Wait("other", longTTL)
		time.Sleep(30 * time.Second)
		assert.Equal(b, 3, log.Says("node does not let us queue"), "a wait reports it")
		b.Release(held)
		b.Release(w.Hold())
		b.Release(l)
	})
}

// Close ends subscribing, whatever its state.
func TestCloseEndsTheSubscriptionsOfKeptLocks(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		p := b.NewRedlock(redlock.Config{})
		l := b.Take(p)
		l.KeepAlive()
		time.Sleep(ttl)
		assert.Len(b, b.Redis(0).PubSubChannels(""), 1)
		require.NoError(b, p.Close())
		b.Settle()
		for i := range 3 {
			assert.Empty(b, b.Redis(i).PubSubChannels(""))
		}
		assert.Equal(b, redlock.ErrClosed, context.Cause(l.Context()))
	})
}
