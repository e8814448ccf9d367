package voter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Another server takes over behind the address. It has been up for long.
func TestGuardQuarantinesAPromotedServer(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, time.Hour, 0)
		require.NoError(b, b.Masters.Master(2).FailOver())
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld) // node 1 granted; node 2 has no vote yet
		time.Sleep(time.Second)
		_, err = b.Redlock.TryAcquire(ctx, key, ttl)
		assert.ErrorContains(b, err, b.Masters.Master(2).Addr()+": quarantined for 9.1s: another server took over 1s ago")
		time.Sleep(virtual.GuardFor)
		b.Release(b.Take(b.Redlock))
	})
}

// A master is demoted and promoted again. Its connections live on, and its run id stays the same.
// The client finds out, whether or not it asked meanwhile.
func TestGuardQuarantinesAFormerMaster(t *testing.T) {
	for _, asked := range []bool{true, false} {
		virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
			b.Warm()
			b.Steal(key, time.Hour, 0)
			b.Masters.Master(2).Demote()
			if asked {
				_, err := b.Redlock.TryAcquire(ctx, key, ttl)
				assert.ErrorContains(b, err, "READONLY")
				_, err = b.Redlock.TryAcquire(ctx, key, ttl)
				require.Error(b, err)
				assert.ErrorContains(b, b.Redlock.Nodes()[2].Servers[0].Err, "is a replica")
			} else {
				time.Sleep(time.Second)
			}
			b.Masters.Master(2).Promote()
			_, err := b.Redlock.TryAcquire(ctx, key, ttl)
			assert.ErrorContains(b, err, "another server took over", "asked: %v", asked)
			time.Sleep(virtual.Quarantine)
			b.Release(b.Take(b.Redlock))
		})
	}
}

// promote lets a replica take over that has all keys but the latest. It has the identity record.
func promote(b *virtual.Bed, i int) {
	b.Helper()
	mark, err := b.Redis(i).Get("redlock:server")
	require.NoError(b, err)
	require.NoError(b, b.Masters.Master(i).FailOver())
	require.NoError(b, b.Redis(i).Set("redlock:server", mark))
}

// A client that did not see a replica's promotion finds in the node's identity record that another
// server was there, or since when this one is.
func TestGuardOfANewClientKnowsOfAPromotion(t *testing.T) {
	virtual.Run(t, 3, virtual.Guarded, func(b *virtual.Bed) {
		b.Warm()
		b.Warm() // writes the identity records
		time.Sleep(time.Second)
		b.Steal(key, time.Hour, 0)
		promote(b, 2)
		twoMeetThePromoted(b)
		time.Sleep(virtual.GuardFor)
		b.Redis(0).Del(key)
		third := b.NewRedlock(virtual.Guarded)
		b.Release(b.Take(third))
		assert.NoError(b, third.Nodes()[2].Servers[0].Err)
		// A client that was there all the time believes the record too, although it learns of the
		// promotion late.
		b.Cycle(b.Redlock)
		b.Release(b.Take(b.Redlock))
		assert.NoError(b, b.Redlock.Nodes()[2].Servers[0].Err)
	})
}
