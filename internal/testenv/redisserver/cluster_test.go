package redisserver

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shards int
		opts   []Option
	}{
		{shards: 1},
		{shards: 3, opts: []Option{RequirePass("secret")}},
		{shards: 2, opts: []Option{TLS()}},
	} {
		t.Run(fmt.Sprint(c.shards), func(t *testing.T) {
			t.Parallel()
			cluster := StartCluster(t, c.shards, c.opts...)
			require.Len(t, cluster.Servers(), c.shards)
			client := cluster.Client()
			used := map[string]bool{}
			for i := range 50 {
				key := fmt.Sprint("key", i)
				require.NoError(t, client.Set(ctx, key, "v", 0).Err())
				shard, err := client.MasterForKey(ctx, key)
				require.NoError(t, err)
				require.Equal(t, "v", shard.Get(ctx, key).Val())
				used[shard.Options().Addr] = true
			}
			for _, s := range cluster.Servers() {
				require.True(t, used[s.Addr()], "%s serves no slot of %v", s.Addr(), used)
			}
		})
	}
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		cluster := StartCluster(t, 1)
		client := cluster.Client()
		require.NoError(t, client.Set(ctx, "k", "v", 0).Err())
		require.NoError(t, cluster.Servers()[0].Restart())
		require.NoError(t, cluster.AwaitOK())
		require.ErrorIs(t, client.Get(ctx, "k").Err(), redis.Nil)
	})
}

func TestClusterOnUnixSocket(t *testing.T) {
	_, err := LaunchCluster(1, UnixSocket())
	require.ErrorContains(t, err, "needs TCP")
}
