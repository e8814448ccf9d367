package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

func redsyncPool(client redis.UniversalClient) redsyncredis.Pool { return goredis.NewPool(client) }

func (m *masters) redsync() *redsync.Redsync {
	var pools []redsyncredis.Pool
	for _, c := range m.clients() {
		pools = append(pools, redsyncPool(c))
	}
	return redsync.New(pools...)
}

func redsyncOther(m *masters) other {
	rs := m.redsync()
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		mutex := rs.NewMutex(key, redsync.WithExpiry(ttl))
		err := mutex.TryLockContext(ctx)
		var taken *redsync.ErrTaken
		if errors.As(err, &taken) {
			return nil, errRefused
		}
		if err != nil {
			// With a split vote no quorum of masters has refused.
			var one *redsync.ErrNodeTaken
			if errors.As(err, &one) || errors.Is(err, redsync.ErrFailed) {
				return nil, errRefused
			}
			return nil, err
		}
		return func(ctx context.Context) error {
			ok, err := mutex.UnlockContext(ctx)
			if err == nil && !ok {
				err = errors.New("redsync: no quorum had the value")
			}
			return err
		}, nil
	}
}

// An Extend of redsync shortens a lock, an Extend of ours never does.
func TestRedsyncExtendShortensAndOursDoesNot(t *testing.T) {
	m := startMasters(t, 3)
	theirs := m.redsync().NewMutex("theirs", redsync.WithExpiry(ttl))
	require.NoError(t, theirs.Lock())
	shorter := m.redsync().NewMutex("theirs", redsync.WithExpiry(time.Minute), redsync.WithValue(theirs.Value()))
	ok, err := shorter.Extend()
	require.NoError(t, err)
	require.True(t, ok)
	assert.LessOrEqual(t, m.admin[0].PTTL(m.ctx, "theirs").Val(), time.Minute)

	ours, err := m.ours(redlock.Config{}).TryAcquire(m.ctx, "ours", ttl)
	require.NoError(t, err)
	until := ours.Until()
	require.NoError(t, ours.Extend(m.ctx, time.Minute))
	assert.Equal(t, until, ours.Until())
	assert.Greater(t, m.admin[0].PTTL(m.ctx, "ours").Val(), time.Minute)
	require.NoError(t, ours.Release(m.ctx))
}

// A mutex of redsync that knows our value can unlock our lock: the value is the ownership. Our
// holder finds out.
func TestRedsyncUnlocksOurLockByItsValue(t *testing.T) {
	m := startMasters(t, 3)
	ours, err := m.ours(redlock.Config{}).TryAcquire(m.ctx, "job", ttl)
	require.NoError(t, err)
	ok, err := m.redsync().NewMutex("job", redsync.WithValue(ours.Value())).Unlock()
	require.NoError(t, err)
	require.True(t, ok)
	require.ErrorIs(t, ours.Extend(m.ctx, ttl), redlock.ErrNotHeld)
}

// An inspection does not take a lock of redsync for one of ours, and only ForceReleaseForeign breaks
// it.
func TestRedsyncLockIsForeignToAnInspection(t *testing.T) {
	m := startMasters(t, 3)
	theirs := m.redsync().NewMutex("job", redsync.WithExpiry(ttl))
	require.NoError(t, theirs.Lock())
	r := m.ours(redlock.Config{})
	found, err := r.Inspect(m.ctx, "job")
	require.NoError(t, err)
	for _, n := range found.Nodes {
		assert.NotEmpty(t, n.Foreign())
		assert.NotContains(t, fmt.Sprint(n), theirs.Value())
	}
	_, err = r.ForceRelease(m.ctx, found)
	require.ErrorIs(t, err, redlock.ErrForeign)
	deleted, err := r.ForceReleaseForeign(m.ctx, found)
	require.NoError(t, err)
	assert.NotEmpty(t, deleted)
	m.free("job")
	ok, err := theirs.Unlock()
	require.ErrorIs(t, err, redsync.ErrLockAlreadyExpired)
	require.False(t, ok)
}
