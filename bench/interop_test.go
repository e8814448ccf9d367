package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// An uncontended acquisition is SET key value NX PX ttl and nothing else. Therefore other
// Redlock clients and this library exclude each other on the same keys.
func TestWeAndRedsyncExcludeEachOther(t *testing.T) {
	const key, ttl = "orders", 30 * time.Second
	ctx := context.Background()
	servers := redisserver.Start(t, 5)
	var (
		nodes []redis.UniversalClient
		pools []redsyncredis.Pool
	)
	for _, s := range servers {
		nodes = append(nodes, s.Client())
		pools = append(pools, goredis.NewPool(s.Client()))
	}
	ours, err := redlock.New(nodes, redlock.Config{NodeTimeout: 5 * time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, ours.Close()) }()
	theirs := redsync.New(pools...).NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(1))

	l, err := ours.TryAcquire(ctx, key, ttl)
	require.NoError(t, err)
	var taken *redsync.ErrTaken
	require.True(t, errors.As(theirs.LockContext(ctx), &taken), "redsync is refused while we hold it")
	require.NoError(t, l.Extend(ctx, ttl), "and has not touched our keys")
	require.NoError(t, l.Release(ctx))
	everywhere(t, nodes, key, 0)

	require.NoError(t, theirs.LockContext(ctx))
	_, err = ours.TryAcquire(ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)
	everywhere(t, nodes, key, 1)
	ok, err := theirs.UnlockContext(ctx)
	require.NoError(t, err)
	assert.True(t, ok, "we have not touched their keys")

	l, err = ours.Acquire(ctx, key, ttl)
	require.NoError(t, err)
	require.NoError(t, l.Release(ctx))
}

// everywhere waits until every node has the key, or none: the last nodes answer after the
// caller has its result.
func everywhere(t *testing.T, nodes []redis.UniversalClient, key string, want int64) {
	t.Helper()
	for _, n := range nodes {
		require.Eventually(t, func() bool {
			return n.Exists(context.Background(), key).Val() == want
		}, 10*time.Second, time.Millisecond)
	}
}
