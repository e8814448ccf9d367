package redlock_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/redlock"
)

const longTTL = 30 * time.Second

// kept is a lock of the party's that has been renewed once.
func (p *party) kept() *redlock.Lock {
	p.b.Helper()
	l := p.b.hold(p, longTTL)
	l.KeepAlive()
	time.Sleep(longTTL/3 + 2*time.Second)
	return l
}

// broken is what a node says of a lock that ForceRelease has deleted.
func broken(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "broken " + hex.EncodeToString(sum[:16])
}

const brokenChannel = "redlock:wake:broken"

// say publishes on the channel of broken locks, and returns how many have heard it on each.
func (b *bed) say(message string, on ...int) (heard int) {
	for _, i := range on {
		heard += b.redis(i).Publish(brokenChannel, message)
	}
	return heard
}

// A round trip of ForceRelease deletes the keys, and half of it is the message. One more,
// of the renewal, tells the holder.
func TestForceReleaseTellsTheHolder(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		b.delay(10*time.Millisecond, 10*time.Millisecond)
		l := holder.kept()
		i := b.inspect(operator.Redlock)
		began := time.Now()
		_, err := operator.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, 40*time.Millisecond, time.Since(began), "two round trips")
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		time.Sleep(time.Second)
		assert.Empty(b, b.has(key), "the renewal puts nothing back")
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
	})
}

// The nodes that are up are enough, whichever they are.
func TestForceReleaseTellsTheHolderWithoutAMinority(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		b.masters.Kill(0)
		b.masters.Kill(3)
		l := holder.kept()
		i := b.inspect(operator.Redlock)
		began := time.Now()
		_, err := operator.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, began, time.Now())
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		_ = l.Release(ctx)
	})
}

// With links of different speed the messages arrive one by one. A renewal at the first
// would overtake ForceRelease on the others, and would put the key back.
func TestForceReleaseTellsTheHolderWhenAMajorityHasDeleted(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := holder.kept()
		i := b.inspect(operator.Redlock)
		for n, path := range operator.paths {
			path.Shape(func(d faultlink.Direction) (time.Duration, bool) {
				return time.Duration(n*10) * time.Millisecond, false
			})
		}
		began := time.Now()
		go func() { _, _ = operator.ForceRelease(ctx, i) }()
		<-l.Context().Done()
		assert.Equal(b, 20*time.Millisecond, time.Since(began), "the third of five")
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		time.Sleep(time.Second)
		assert.Empty(b, b.has(key))
		_ = l.Release(ctx)
	})
}

// So few messages arrive that a majority may have the lock: it is asked after 200 ms.
func TestForceReleaseTellsTheHolderByFewMessages(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := holder.kept()
		i := b.inspect(operator.Redlock)
		for n := range 4 {
			b.masters.Master(n).LoseMessages(-1)
		}
		began := time.Now()
		_, err := operator.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, nodeTimeout, time.Since(began))
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		_ = l.Release(ctx)
	})
}

// All messages are lost: the next renewal finds out.
func TestForceReleaseIsFoundByTheNextRenewal(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := holder.kept()
		i := b.inspect(operator.Redlock)
		for n := range 3 {
			b.masters.Master(n).LoseMessages(-1)
		}
		began := time.Now()
		_, err := operator.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, longTTL/3-2*time.Second, time.Since(began))
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		_ = l.Release(ctx)
	})
}

// The message arrives while a renewal is under way that two nodes have granted before the
// key was deleted, and the third has yet to answer.
func TestForceReleaseTellsTheHolderDuringARenewal(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l := b.hold(holder, longTTL)
		l.KeepAlive()
		time.Sleep(longTTL/3 + 7*time.Second)
		b.say(broken("another"), 0, 1, 2) // so that no PING delays the messages
		i := b.inspect(operator.Redlock)
		for _, path := range holder.paths {
			path.Shape(func(d faultlink.Direction) (time.Duration, bool) {
				if d != faultlink.ToServer {
					return 300 * time.Millisecond, false
				}
				return 0, false
			})
		}
		time.Sleep(longTTL/3 - 7*time.Second + 10*time.Millisecond)
		for _, path := range holder.paths {
			path.Shape(nil) // so that the messages come before the replies
		}
		began := time.Now()
		_, err := operator.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, 290*time.Millisecond, time.Since(began), "the renewal that was under way found nothing")
		assert.Equal(b, redlock.ErrNotHeld, context.Cause(l.Context()))
		_ = l.Release(ctx)
	})
}

// Do ends its function's context.
func TestForceReleaseTellsDo(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		operator, holder := b.ready(redlock.Config{}), b.ready(redlock.Config{})
		err := holder.Do(ctx, key, longTTL, func(ctx context.Context) error {
			time.Sleep(longTTL/3 + 2*time.Second)
			i := b.inspect(operator.Redlock)
			began := time.Now()
			_, err := operator.ForceRelease(context.WithoutCancel(ctx), i)
			require.NoError(b, err)
			<-ctx.Done()
			assert.Equal(b, began, time.Now())
			return context.Cause(ctx)
		})
		assert.ErrorIs(b, err, redlock.ErrNotHeld)
	})
}

// The Redlock that breaks a lock may be the holder's own.
func TestForceReleaseTellsItself(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		l := p.kept()
		i := b.inspect(p.Redlock)
		began := time.Now()
		_, err := p.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, began, time.Now())
		_ = l.Release(ctx)
	})
}

// A message that nobody has a reason to send costs a renewal, and the lock goes on.
func TestAForgedMessageDoesNotEndALock(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		holder := b.ready(redlock.Config{})
		l := holder.kept()
		tape := b.record(holder)
		assert.Equal(b, 3, b.say(broken(l.Value()), 0, 1, 2))
		b.settle()
		assert.Equal(b, map[string]int{"extend": 5}, asked(tape.count())[holder.name])
		time.Sleep(time.Second)
		assert.NoError(b, l.Context().Err())
		assert.Empty(b, asked(tape.count()), "once")

		b.say(broken(l.Value()), 2)
		time.Sleep(nodeTimeout - time.Millisecond)
		assert.Empty(b, asked(tape.count()), "a majority may have it")
		time.Sleep(time.Millisecond)
		b.settle()
		assert.Equal(b, map[string]int{"extend": 5}, asked(tape.count())[holder.name])

		for _, other := range []string{
			broken("somebody else's"), "broken", "broken ", "broken " + l.Value(), broken(l.Value()) + "0",
			broken(l.Value())[:20], "broken \x00", "", "0 " + key, "1 ", " ", fmt.Sprintf("%01000000d", 1),
		} {
			b.say(other, 0, 1, 2, 3, 4)
		}
		time.Sleep(time.Second)
		assert.Equal(b, []int{0, 1, 2, 3, 4}, b.has(key))
		b.release(l)
		for _, sent := range tape.sent {
			assert.NotEqual(b, "extend", sent.what)
		}
	})
}

// Whoever floods the channel with what concerns a lock makes it renew twenty times a
// second, and no more. What concerns others costs no command at all.
func TestAFloodOfMessagesIsBounded(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder := b.ready(redlock.Config{})
		l := holder.kept()
		tape := b.record(holder)
		for range 2000 {
			b.say(broken(l.Value()), 0, 1, 2)
			time.Sleep(time.Millisecond)
		}
		b.settle()
		extends := asked(tape.count())[holder.name]["extend"]
		assert.Greater(b, extends, 3*30)
		assert.LessOrEqual(b, extends, 3*41)
		assert.NoError(b, l.Context().Err())
		for n := range 2000 {
			b.say(broken(fmt.Sprint(n)), 0, 1, 2)
		}
		time.Sleep(time.Second)
		assert.Empty(b, asked(tape.count()))
		b.release(l)
	})
}

// The message about a lock that was released meanwhile, and about its successor's
// predecessor, concerns nobody.
func TestALateMessageDisturbsNobody(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder := b.ready(redlock.Config{})
		first := holder.kept()
		value := first.Value()
		b.release(first)
		second := holder.kept()
		tape := b.record(holder)
		assert.Equal(b, 3, b.say(broken(value), 0, 1, 2))
		time.Sleep(time.Second)
		assert.Empty(b, asked(tape.count()))
		assert.NoError(b, second.Context().Err())
		b.release(second)
	})
}

// A lock that is held for a short time costs nothing, and one that is not renewed neither:
// nobody listens, and the commands are those of an acquisition and a release.
func TestNobodyListensForAShortLock(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		tape := b.record(p)
		for range 10 {
			l := b.hold(p, longTTL)
			l.KeepAlive()
			time.Sleep(longTTL/3 - time.Millisecond)
			b.release(l)
		}
		assert.Equal(b, map[string]int{"SET": 30, "release": 30}, tape.count()[p.name])
		l := b.hold(p, longTTL)
		time.Sleep(longTTL - time.Second)
		b.release(l)
		assert.Equal(b, map[string]int{"SET": 3, "release": 3}, tape.count()[p.name])
	})
}

// For a lock that is held for longer there is one subscription on each node, however
// many locks there are, until ten seconds after the last of them. It is asked every five
// seconds whether it lives.
func TestListeningForKeptLocks(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		p := b.ready(redlock.Config{})
		tape := b.record(p)
		var kept []*redlock.Lock
		for n := range 20 {
			l, err := p.TryAcquire(ctx, fmt.Sprint("key ", n), longTTL)
			require.NoError(b, err)
			l.KeepAlive()
			kept = append(kept, l)
		}
		time.Sleep(10 * time.Minute)
		count := tape.count()[p.name]
		assert.Equal(b, 3, count["SUBSCRIBE"])
		assert.InDelta(b, 3*590/5, count["PING"], 6)
		for _, l := range kept[1:] {
			b.release(l)
		}
		time.Sleep(time.Minute)
		for i := range 3 {
			assert.Equal(b, []string{brokenChannel}, b.redis(i).PubSubChannels(""))
		}
		b.release(kept[0])
		time.Sleep(9 * time.Second)
		for i := range 3 {
			assert.Len(b, b.redis(i).PubSubChannels(""), 1)
		}
		time.Sleep(11 * time.Second)
		for i := range 3 {
			assert.Empty(b, b.redis(i).PubSubChannels(""))
		}
		assert.Zero(b, tape.count()[p.name]["SUBSCRIBE"])
	})
}

// Waits and kept locks share the connections, and neither ends the other's. A wait does
// not ask for its place again because of a lock.
func TestListeningForKeptLocksBesideWaits(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		operator, other, p := b.ready(redlock.Config{}), b.ready(redlock.Config{}), b.ready(redlock.Config{})
		l, err := p.TryAcquire(ctx, "kept", longTTL)
		require.NoError(b, err)
		l.KeepAlive()
		held := b.hold(other, time.Hour)
		w := p.wait(key, longTTL)
		time.Sleep(longTTL/3 - time.Second)
		tape := b.record(p)
		time.Sleep(2 * time.Second)
		counts := tape.count()[p.name]
		assert.Equal(b, 3, counts["SUBSCRIBE"], "a channel more on the same connections")
		assert.LessOrEqual(b, counts["stand"], 1, "a look at the most")
		for i := range 3 {
			assert.Len(b, b.redis(i).PubSubChannels(""), 2)
		}
		b.release(held)
		b.release(w.hold())
		time.Sleep(time.Minute)
		i, err := operator.Inspect(ctx, "kept")
		require.NoError(b, err)
		began := time.Now()
		_, err = operator.ForceRelease(ctx, i)
		require.NoError(b, err)
		<-l.Context().Done()
		assert.Equal(b, began, time.Now(), "the end of the waits did not end the listening")
		_ = l.Release(ctx)

		held = b.hold(other, time.Hour)
		w = p.wait(key, longTTL)
		time.Sleep(time.Minute)
		b.release(held)
		began = time.Now()
		b.release(w.hold())
		assert.Equal(b, began, w.got, "nor the end of the locks")
		b.noQueues()
	})
}

// A subscription that breaks is made again.
func TestListeningForKeptLocksGoesOn(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		holder := b.ready(redlock.Config{})
		l := holder.kept()
		for _, m := range b.masters.All() {
			m.BreakSubscriptions()
		}
		time.Sleep(2 * time.Second)
		i := b.inspect(b.lock)
		began := time.Now()
		b.force(i, 0, 1, 2)
		<-l.Context().Done()
		assert.Equal(b, began, time.Now())
		_ = l.Release(ctx)
	})
}

// Where nobody may listen a kept lock is renewed as ever, and nothing is said of it.
func TestKeptLocksWithoutSubscriptions(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		var log logbook
		holder := b.ready(redlock.Config{Logger: log.logger()})
		for _, m := range b.masters.All() {
			m.RefuseSubscriptions("NOPERM this user has no permissions to run the 'subscribe' command")
		}
		l := holder.kept()
		time.Sleep(5 * time.Minute)
		assert.NoError(b, l.Context().Err())
		assert.Zero(b, log.says("\n"))

		other := b.ready(redlock.Config{})
		held, err := other.TryAcquire(ctx, "other", time.Hour)
		require.NoError(b, err)
		w := holder.wait("other", longTTL)
		time.Sleep(30 * time.Second)
		assert.Equal(b, 3, log.says(refusesToQueue), "who waits is told")
		b.release(held)
		b.release(w.hold())
		b.release(l)
	})
}

// Neither values nor their digests are logged, and no hook of a client's prints them.
func TestForceReleaseLogsNoDigest(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		var log logbook
		holder := b.ready(redlock.Config{Logger: log.logger()})
		operator := b.ready(redlock.Config{Logger: log.logger()})
		l := holder.kept()
		_, err := operator.ForceRelease(ctx, b.inspect(operator.Redlock))
		require.NoError(b, err)
		<-l.Context().Done()
		time.Sleep(time.Second)
		assert.Positive(b, log.says("lock lost"))
		assert.Zero(b, log.says(l.Value()))
		assert.Zero(b, log.says(broken(l.Value())[len("broken "):][:16]))
		_ = l.Release(ctx)
	})
}

// Close ends the listening, whatever it is at.
func TestCloseWhileListeningForKeptLocks(t *testing.T) {
	virtually(t, 3, redlock.Config{}, func(b *bed) {
		p := b.client(redlock.Config{})
		l := b.take(p)
		l.KeepAlive()
		time.Sleep(ttl)
		assert.Len(b, b.redis(0).PubSubChannels(""), 1)
		require.NoError(b, p.Close())
		b.settle()
		for i := range 3 {
			assert.Empty(b, b.redis(i).PubSubChannels(""))
		}
		assert.Equal(b, redlock.ErrClosed, context.Cause(l.Context()))
	})
}
