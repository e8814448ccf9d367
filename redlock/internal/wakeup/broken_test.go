package wakeup_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// withOperator runs f with n masters, a party that breaks locks and one that holds them.
func withOperator(t *testing.T, n int, f func(b *virtual.Bed, operator, holder *virtual.Party)) {
	t.Helper()
	virtual.Run(t, n, redlock.Config{}, func(b *virtual.Bed) {
		f(b, b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{}))
	})
}

// ForceRelease deletes the keys in a round trip, and the message takes half of it. The renewal that
// the message causes takes one more, after which the holder knows.
func TestForceReleaseNotifiesTheHolder(t *testing.T) {
	withOperator(t, 5, func(b *virtual.Bed, operator, holder *virtual.Party) {
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		l := kept(holder)
		i := b.Inspect(operator.Redlock)
		assert.Equal(b, 40*time.Millisecond, noticed(b, operator, i, l), "two round trips")
		time.Sleep(time.Second)
		assert.Empty(b, b.Has(key), "the renewal puts nothing back")
		assert.ErrorIs(b, l.Release(ctx), redlock.ErrNotHeld)
	})
}

// The live nodes are enough, whichever they are.
func TestForceReleaseNotifiesTheHolderWithoutAMinority(t *testing.T) {
	withOperator(t, 5, func(b *virtual.Bed, operator, holder *virtual.Party) {
		b.Masters.Kill(0)
		b.Masters.Kill(3)
		l := kept(holder)
		i := b.Inspect(operator.Redlock)
		assert.Zero(b, noticed(b, operator, i, l))
		_ = l.Release(ctx)
	})
}

// With links of different speed the messages arrive one by one. A renewal after the first would
// overtake ForceRelease on the other nodes, and would put the key back.
func TestForceReleaseNotifiesTheHolderWhenAMajorityHasDeleted(t *testing.T) {
	withOperator(t, 5, func(b *virtual.Bed, operator, holder *virtual.Party) {
		l := kept(holder)
		i := b.Inspect(operator.Redlock)
		for n, path := range operator.Paths {
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
		assert.Empty(b, b.Has(key))
		_ = l.Release(ctx)
	})
}

// So few messages arrive that a majority may still have the lock. The masters are asked after 200
// ms.
func TestForceReleaseNotifiesTheHolderByFewMessages(t *testing.T) {
	withOperator(t, 5, func(b *virtual.Bed, operator, holder *virtual.Party) {
		l := kept(holder)
		i := b.Inspect(operator.Redlock)
		for n := range 4 {
			b.Masters.Master(n).LoseMessages(-1)
		}
		assert.Equal(b, virtual.NodeTimeout, noticed(b, operator, i, l))
		_ = l.Release(ctx)
	})
}

// All messages are lost, and the next renewal finds the loss.
func TestForceReleaseIsFoundByTheNextRenewal(t *testing.T) {
	withOperator(t, 3, func(b *virtual.Bed, operator, holder *virtual.Party) {
		l := kept(holder)
		i := b.Inspect(operator.Redlock)
		for n := range 3 {
			b.Masters.Master(n).LoseMessages(-1)
		}
		assert.Equal(b, longTTL/3-2*time.Second, noticed(b, operator, i, l))
		_ = l.Release(ctx)
	})
}

// The message arrives during a renewal. Two nodes have granted it before the key was deleted, and
// the third has yet to answer.
func TestForceReleaseNotifiesTheHolderDuringARenewal(t *testing.T) {
	withOperator(t, 3, func(b *virtual.Bed, operator, holder *virtual.Party) {
		l := b.Hold(holder, longTTL)
		l.KeepAlive()
		time.Sleep(longTTL/3 + 7*time.Second)
		say(b, spy.Broken("another"), 0, 1, 2) // no PING delays a message then
		i := b.Inspect(operator.Redlock)
		for _, path := range holder.Paths {
			path.Shape(func(d faultlink.Direction) (time.Duration, bool) {
				if d != faultlink.ToServer {
					return 300 * time.Millisecond, false
				}
				return 0, false
			})
		}
		time.Sleep(longTTL/3 - 7*time.Second + 10*time.Millisecond)
		for _, path := range holder.Paths {
			path.Shape(nil) // the messages then arrive before the replies
		}
		assert.Equal(b, 290*time.Millisecond, noticed(b, operator, i, l), "the renewal that was under way found nothing")
		_ = l.Release(ctx)
	})
}

// The context of Do's function ends.
func TestForceReleaseEndsTheContextOfDo(t *testing.T) {
	withOperator(t, 3, func(b *virtual.Bed, operator, holder *virtual.Party) {
		err := holder.Do(ctx, key, longTTL, func(ctx context.Context) error {
			time.Sleep(longTTL/3 + 2*time.Second)
			i := b.Inspect(operator.Redlock)
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
func TestForceReleaseOfOnesOwnLock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		p := b.ReadyParty(redlock.Config{})
		l := kept(p)
		i := b.Inspect(p.Redlock)
		assert.Zero(b, noticed(b, p, i, l))
		_ = l.Release(ctx)
	})
}

// Values and their digests are not logged, and hooks of clients cannot print them.
func TestForceReleaseLogsNoDigest(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var log spy.Log
		holder := b.ReadyParty(redlock.Config{Logger: log.Logger()})
		operator := b.ReadyParty(redlock.Config{Logger: log.Logger()})
		l := kept(holder)
		_, err := operator.ForceRelease(ctx, b.Inspect(operator.Redlock))
		require.NoError(b, err)
		<-l.Context().Done()
		time.Sleep(time.Second)
		assert.Positive(b, log.Says("lock lost"))
		assert.Zero(b, log.Says(l.Value()))
		assert.Zero(b, log.Says(spy.Broken(l.Value())[len("broken "):][:16]))
		_ = l.Release(ctx)
	})
}
