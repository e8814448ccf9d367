package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A proxy that is restarted breaks connections to masters that are well.
func TestReleaseIsRepeatedOnNewConnectionsBeforeItFails(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		for i := range 3 {
			b.Masters.Master(i).LoseRequests(1)
		}
		var err error
		assert.LessOrEqual(b, virtual.Took(func() { err = l.Release(ctx) }), 50*time.Millisecond)
		assert.NoError(b, err)
		b.Settle() // Release returns at the majority
		assert.Empty(b, b.Has(key))
	})
}

// The keys are gone, and nobody can tell whether they were there until then. That is no
// loss of the lock.
func TestReleaseWhoseRepliesWereLostIsNotALoss(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		for i := range 3 {
			b.Masters.Master(i).LoseReplies(1)
		}
		err := l.Release(ctx)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrNotHeld)
		assert.Contains(b, fmt.Sprint(err), "connection lost")
		assert.Empty(b, b.Has(key))
	})
}

// A hung minority costs nothing, a hung majority one NodeTimeout, and one that is known to
// refuse connections nothing either.
func TestReleaseTakesNoLongerThanItMust(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		locks := map[string]*redlock.Lock{}
		for _, name := range []string{"minority", "majority", "died", "dead"} {
			locks[name] = b.Acquire(name, time.Hour)
		}
		b.Settle()
		b.Stall(0, 1)
		assert.Zero(b, virtual.Took(func() { require.NoError(b, locks["minority"].Release(ctx)) }))
		b.Stall(2)
		assert.Equal(b, virtual.NodeTimeout, virtual.Took(func() {
			assert.ErrorIs(b, locks["majority"].Release(ctx), redlock.ErrNoQuorum)
		}))
		for i := range 3 {
			b.Masters.Master(i).Resume()
		}
		time.Sleep(5 * time.Second)
		b.Acquire("warm", ttl)
		b.Settle()
		b.Masters.Kill(0, 1, 2)
		assert.LessOrEqual(b, virtual.Took(func() {
			assert.ErrorIs(b, locks["died"].Release(ctx), redlock.ErrNoQuorum)
		}), 50*time.Millisecond, "the first finds that the connections broke, and dials")
		assert.Zero(b, virtual.Took(func() {
			assert.ErrorIs(b, locks["dead"].Release(ctx), redlock.ErrNoQuorum)
		}), "no connection: nothing to wait for")
	})
}
