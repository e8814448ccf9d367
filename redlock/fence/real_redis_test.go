package fence

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/slot"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
)

func TestRedisGuardOnRealServer(t *testing.T) {
	t.Parallel()
	client := redisserver.Start(t, 1)[0].Client()
	g, err := NewRedis(client)
	require.NoError(t, err)
	testRedisGuard(t, g, client)

	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	require.NoError(t, g.Set(t.Context(), "flushed", "v", 0, 1), "case 3")
	n, err := client.ScriptExists(t.Context(), writeSHA1).Result()
	require.NoError(t, err)
	require.Equal(t, []bool{true}, n, "the pinned hash is the server's too")
}

// A Cluster accepts a script only if both keys are in one slot of the master that runs it, so
// it also checks the names of the tokens' keys.
func TestRedisGuardOnRealCluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.StartCluster(t, 2)
	client := cluster.Client()
	g, err := NewRedis(client)
	require.NoError(t, err)
	testRedisGuard(t, g, client)
	for _, key := range []string{"k", "{a}k", "a}b", "{}", "{}x", "}{", "a{b", "{a", "{{a}}", "}", "{}{a}", "\x00", "é}"} {
		want, err := client.ClusterKeySlot(t.Context(), key).Result()
		require.NoError(t, err)
		got, err := client.ClusterKeySlot(t.Context(), slot.Sibling(slot.GuardPrefix, key)).Result()
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", key)
		require.NoError(t, g.Set(t.Context(), key, "v", 0, 1<<53-1), "%q", key)
	}
}

// A server without free memory writes nothing and forgets no token.
func TestRedisGuardWithoutMemory(t *testing.T) {
	t.Parallel()
	client := redisserver.Start(t, 1)[0].Client(func(o *redis.Options) { o.MaxRetries = -1 })
	g, err := NewRedis(client)
	require.NoError(t, err)
	ctx := t.Context()
	require.NoError(t, g.Set(ctx, "k", "v", 0, 5))
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "1").Err())
	for _, token := range []int64{5, 6} {
		require.ErrorContains(t, g.Set(ctx, "k", "w", 0, token), "OOM")
	}
	require.ErrorIs(t, g.Set(ctx, "k", "w", 0, 4), ErrStaleToken)
	require.NoError(t, client.ConfigSet(ctx, "maxmemory", "0").Err())
	require.Equal(t, "v", client.Get(ctx, "k").Val())
	require.Equal(t, "5", client.Get(ctx, "redlock:guard:{k}").Val())
}
