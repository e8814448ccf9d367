package redlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// On links with a round trip of 20 ms, a minority grants in vain. Whenever the context ends after
// that, the granted keys are gone on return, which takes at most one more round trip. Keys that are
// granted later, for example in a second attempt of Acquire, are gone a round trip after the
// answer.
func TestAcquireLeavesNothingWhereItWasGranted(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	try, wait := (*redlock.Redlock).TryAcquire, (*redlock.Redlock).Acquire
	for name, acquire := range map[string]func(*redlock.Redlock, context.Context, string, time.Duration) (*redlock.Lock, error){
		"TryAcquire": try, "Acquire": wait,
	} {
		for ends := time.Millisecond; ends < 140*time.Millisecond; ends += 3 * time.Millisecond {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				b.Warm()
				b.Delay(roundTrip/2, roundTrip/2)
				b.Steal(key, time.Hour, 0, 1, 2)
				for i := range 3 { // the others have granted before the decision
					b.Masters.Master(i).Delay(roundTrip/2, roundTrip/2+100*time.Microsecond)
				}
				start := time.Now()
				_, err := acquire(b.Redlock, impatient(b, ends), key, ttl)
				require.Error(b, err)
				took := time.Since(start)
				assert.LessOrEqual(b, took, ends+roundTrip+100*time.Microsecond, name)
				for i := 3; i < 5; i++ {
					m := b.Masters.Master(i)
					has, _ := m.Miniredis().Get(key)
					switch granted := firstValue(m.Commands()); {
					case ends < roundTrip: // no node has answered
						assert.Equal(b, ends, took, "%s, %v", name, ends)
					default:
						require.NotEmpty(b, granted)
						assert.NotEqual(b, granted, has, "%s, the context ends after %v", name, ends)
					}
				}
				time.Sleep(2*roundTrip + time.Millisecond)
				assert.Equal(b, []int{0, 1, 2}, b.Has(key), "%s, the context ends after %v", name, ends)
			})
		}
	}
}

// firstValue returns the value of the first attempt on the key.
func firstValue(commands [][]string) string {
	for _, c := range commands {
		if c[0] == "SET" && c[1] == key {
			return c[2]
		}
	}
	return ""
}

// A node that hangs after it has granted delays a cancelled caller by at most one NodeTimeout.
func TestAcquireDoesNotWaitForTheCleanUpOfAHungNode(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(time.Millisecond, time.Millisecond)
		b.Steal(key, time.Hour, 0, 1, 2)
		time.AfterFunc(2*time.Millisecond, func() { b.Stall(3, 4) })
		assert.LessOrEqual(b, virtual.Took(func() {
			_, err := b.Redlock.Acquire(impatient(b, 5*time.Millisecond), key, ttl)
			assert.ErrorIs(b, err, redlock.ErrHeld)
		}), 5*time.Millisecond+virtual.NodeTimeout)
		b.Stall(0, 1, 2)
		assert.Equal(b, 300*time.Millisecond, virtual.Took(func() {
			_, err := b.Redlock.Acquire(impatient(b, 300*time.Millisecond), "other", ttl)
			assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		}), "nobody granted")
	})
}

// A pending delivery to a node that answers again is sent before Close returns.
func TestCloseSendsPendingDeliveries(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		r := b.NewRedlock(redlock.Config{})
		l, err := r.Acquire(context.Background(), "key", time.Minute)
		require.NoError(b, err)
		b.Settle()
		b.Masters.Master(0).LoseRequests(1)
		require.NoError(b, l.Release(context.Background()))
		time.Sleep(time.Millisecond) // node 0 lost the release, which is now pending
		require.NoError(b, r.Close())
		assert.False(b, b.Masters.Master(0).Miniredis().Exists("key"), "Close left the key on a node that answers")
	})
}

// A late grant is deleted even if the ttl is over by the client's clock: the node's ttl began when
// it executed the SET.
func TestAcquireDeletesALateGrantWhenTheTTLIsOver(t *testing.T) {
	for _, name := range []string{"release", "clean-up"} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
				b.Warm()
				b.Stall(0)
				if name == "clean-up" {
					b.Stall(1)
				}
				l, err := b.Redlock.TryAcquire(context.Background(), "key", 300*time.Millisecond)
				if name == "release" {
					require.NoError(b, err)
					require.NoError(b, l.Release(context.Background()))
				} else {
					require.Error(b, err)
				}
				time.Sleep(time.Second) // far less than the lane waits for an answer
				b.Resume(0, 1)
				time.Sleep(50 * time.Millisecond)
				assert.False(b, b.Masters.Master(0).Miniredis().Exists("key"), "the late grant stays for %v", b.Masters.Master(0).Miniredis().TTL("key"))
			})
		})
	}
}

// A release waits behind a batch whose connection breaks. It is sent on another connection although
// the Redlock is being closed, because the node answers.
func TestCloseSendsDeliveriesBehindABrokenBatch(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		r := b.NewRedlock(redlock.Config{})
		l, err := r.Acquire(context.Background(), "key", time.Minute)
		require.NoError(b, err)
		b.Settle()
		m := b.Masters.Master(0)
		m.Delay(10*time.Millisecond, 0)

		tried := make(chan error)
		go func() {
			_, err := r.TryAcquire(context.Background(), "another", time.Minute)
			tried <- err
		}()
		time.Sleep(5 * time.Millisecond) // its SET is on its way
		require.NoError(b, l.Release(context.Background()))
		closed := make(chan error)
		go func() { closed <- r.Close() }()
		b.Settle()
		require.NoError(b, m.Restart(), "which cuts the connection")
		m.Delay(0, 0)
		require.NoError(b, <-tried)
		require.NoError(b, <-closed)
		assert.False(b, m.Miniredis().Exists("key"), "the release was not sent")
	})
}

// A SET that waits behind a batch of a hung node is never sent once the lock has been released.
// This also holds if the lock was extended in between, and the other nodes got all commands.
func TestReleaseIsNotFollowedByCommandsThatWaitedBehindAHungNode(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Stall(2)
		first := b.Acquire("first", ttl) // in the batch that hangs
		b.Settle()
		l := b.Acquire(key, ttl) // behind it
		require.NoError(t, l.Extend(ctx, 2*ttl))
		require.NoError(t, l.Release(ctx))
		require.NoError(t, first.Release(ctx))
		hung := b.Masters.Master(2)
		hung.Resume()
		time.Sleep(ttl)
		for _, command := range hung.Commands() {
			assert.False(t, command[0] == "SET" && command[1] == key, "sent although it was withdrawn")
		}
		for i := range 3 {
			assert.NotContains(t, b.Has(key), i)
			assert.NotContains(t, b.Has("first"), i)
		}
	})
}

// Case 2: redsync cleaned up with the context that had been cancelled, and left
// its keys for their whole ttl.
func TestAcquireCancelledInTheMiddleLeavesNothing(t *testing.T) {
	for _, at := range []time.Duration{1, 10, 39, 41, 79} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			b.Delay(40*time.Millisecond, 40*time.Millisecond)
			c, cancel := context.WithCancelCause(ctx)
			why := errors.New("shutting down")
			time.AfterFunc(at*time.Millisecond, func() { cancel(why) })
			var err error
			assert.Equal(t, at*time.Millisecond, virtual.Took(func() { _, err = b.Redlock.TryAcquire(c, key, time.Hour) }))
			assert.ErrorIs(t, err, why)
			assert.NotErrorIs(t, err, redlock.ErrNoQuorum)
			assert.NotErrorIs(t, err, redlock.ErrHeld)
			time.Sleep(time.Second)
			assert.Empty(t, b.Has(key))
		})
	}
}

// Case 4: bytes are delayed past the timeout. The release must not arrive before the SET, which
// would leave the key for its ttl.
func TestAcquireDeletesTheKeyOfALateSet(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for i := range 3 {
			b.Masters.Master(i).Delay(700*time.Millisecond, 0)
		}
		_, err := b.Redlock.TryAcquire(ctx, key, time.Hour)
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
		time.Sleep(300 * time.Millisecond)
		assert.Empty(t, b.Has(key), "not there yet")
		time.Sleep(5 * time.Second)
		assert.Empty(t, b.Has(key), "not any more")
		assert.Equal(t, []string{"SET", "EVALSHA"}, b.Commands(0))
	})
}

// Case 5: the SET is applied and its reply is lost. A client library would send it again, and take
// our own key for another client's.
func TestAcquireWhoseReplyIsLostFailsAndCleansUp(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for i := range 3 {
			b.Masters.Master(i).LoseReplies(1)
		}
		var err error
		assert.Zero(t, virtual.Took(func() { _, err = b.Redlock.TryAcquire(ctx, key, time.Hour) }), "no retry behind our back")
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
		sent := b.Commands(0)
		assert.Equal(t, "SET", sent[0])
		assert.NotContains(t, sent[1:], "SET", "once on the wire")

		b.Masters.Master(0).LoseReplies(1)
		b.Masters.Master(1).LoseReplies(1)
		l := b.Acquire(key, time.Hour)
		require.NoError(t, l.Release(ctx))
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
	})
}

// The lock is granted too late. Commands that still wait for a busy node must not be sent
// afterwards.
func TestAcquireWithdrawsCommandsThatWereNotSent(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{NodeTimeout: time.Hour}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(0, 600*time.Millisecond)
		b.Masters.Master(4).Delay(0, 3*time.Second)
		go func() { _, _ = b.Redlock.TryAcquire(ctx, "first", time.Hour) }()
		b.Settle()
		_, err := b.Redlock.TryAcquire(ctx, key, 300*time.Millisecond) // the lanes are busy: it queues
		require.ErrorIs(t, err, redlock.ErrExpired)
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"SET"}, b.Commands(4))
		assert.Empty(t, b.Has(key))
	})
}
