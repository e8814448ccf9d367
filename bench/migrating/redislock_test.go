package migrating_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bsm/redislock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// redislockOther uses the first of the masters, as redislock knows only one.
func redislockOther(m *masters) other {
	client := redislock.New(m.servers[0].Client())
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		l, err := client.Obtain(ctx, key, ttl, &redislock.Options{Metadata: "theirs"})
		if errors.Is(err, redislock.ErrNotObtained) {
			return nil, errRefused
		}
		if err != nil {
			return nil, err
		}
		return l.Release, nil
	}
}

// Without a deadline, Obtain gives up once its ttl is over. Acquire waits as long as its context lasts.
func TestRedislockObtainEndsAfterItsTTLAndAcquireWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := redlocktest.StartVirtual(t, 1)
		r, err := redlock.New(nodes.Clients(), redlock.Config{})
		require.NoError(t, err)
		defer r.Close()
		_, err = r.TryAcquire(t.Context(), "job", 2*time.Hour)
		require.NoError(t, err)

		begun := time.Now()
		retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(3 * time.Second)} // not at the deadline
		_, err = redislock.Obtain(t.Context(), nodes.Master(0).Client(), "job", 10*time.Second, retry)
		require.ErrorIs(t, err, redislock.ErrNotObtained)
		assert.Equal(t, 10*time.Second, time.Since(begun))

		begun = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = r.Acquire(ctx, "job", 10*time.Second)
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Hour, time.Since(begun))
	})
}

// A Refresh of redislock shortens a lock.
func TestRedislockRefreshShortens(t *testing.T) {
	m := startMasters(t, 1)
	l, err := redislock.Obtain(m.ctx, m.servers[0].Client(), "job", ttl, nil)
	require.NoError(t, err)
	require.NoError(t, l.Refresh(m.ctx, time.Minute, nil))
	assert.LessOrEqual(t, m.admin[0].PTTL(m.ctx, "job").Val(), time.Minute)
}

// A client of redislock whose Token is the beginning of our value takes our lock over. Our holder
// finds out.
func TestRedislockTokenTakesOurLockOver(t *testing.T) {
	m := startMasters(t, 1)
	ours, err := m.ours(redlock.Config{}).TryAcquire(m.ctx, "job", ttl)
	require.NoError(t, err)
	theirs, err := redislock.Obtain(m.ctx, m.servers[0].Client(), "job", ttl,
		&redislock.Options{Token: ours.Value(), Metadata: " theirs"})
	require.NoError(t, err)
	require.ErrorIs(t, ours.Extend(m.ctx, ttl), redlock.ErrNotHeld)
	require.NoError(t, theirs.Release(m.ctx))
}
