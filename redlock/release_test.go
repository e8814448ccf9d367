package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// A proxy that is restarted breaks connections to masters that are well.
func TestReleaseIsRepeatedOnNewConnectionsBeforeItFails(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.warm()
		l := b.acquire(key, ttl)
		b.settle()
		for i := range 3 {
			b.masters.Master(i).LoseRequests(1)
		}
		var err error
		assert.LessOrEqual(b, took(func() { err = l.Release(ctx) }), 50*time.Millisecond)
		assert.NoError(b, err)
		b.settle() // Release returns at the majority
		assert.Empty(b, b.has(key))
	})
}

// The keys are gone, and nobody can tell whether they were there until then. That is no
// loss of the lock.
func TestReleaseWhoseRepliesWereLostIsNotALoss(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.warm()
		l := b.acquire(key, ttl)
		b.settle()
		for i := range 3 {
			b.masters.Master(i).LoseReplies(1)
		}
		err := l.Release(ctx)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrNotHeld)
		assert.Contains(b, text(err), "connection lost")
		assert.Empty(b, b.has(key))
	})
}

// A hung minority costs nothing, a hung majority one NodeTimeout, and one that is known to
// refuse connections nothing either.
func TestReleaseTakesNoLongerThanItMust(t *testing.T) {
	virtually(t, 5, redlock.Config{}, func(b *bed) {
		b.warm()
		locks := map[string]*redlock.Lock{}
		for _, name := range []string{"minority", "majority", "died", "dead"} {
			locks[name] = b.acquire(name, time.Hour)
		}
		b.settle()
		b.stall(0, 1)
		assert.Zero(b, took(func() { require.NoError(b, locks["minority"].Release(ctx)) }))
		b.stall(2)
		assert.Equal(b, nodeTimeout, took(func() {
			assert.ErrorIs(b, locks["majority"].Release(ctx), redlock.ErrNoQuorum)
		}))
		for i := range 3 {
			b.masters.Master(i).Resume()
		}
		time.Sleep(5 * time.Second)
		b.acquire("warm", ttl)
		b.settle()
		b.masters.Kill(0, 1, 2)
		assert.LessOrEqual(b, took(func() {
			assert.ErrorIs(b, locks["died"].Release(ctx), redlock.ErrNoQuorum)
		}), 50*time.Millisecond, "the first finds that the connections broke, and dials")
		assert.Zero(b, took(func() {
			assert.ErrorIs(b, locks["dead"].Release(ctx), redlock.ErrNoQuorum)
		}), "no connection: nothing to wait for")
	})
}
