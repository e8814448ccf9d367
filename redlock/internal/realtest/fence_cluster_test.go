package realtest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// A key and its fence are in one slot of a Cluster, wherever the key has braces. A script with keys
// of two slots would fail with CROSSSLOT.
func TestRealAcquireKeepsTheFenceInTheSlotOfItsKey(t *testing.T) {
	c := startClustered(t, 3)
	var mu sync.Mutex
	var strange []string
	note := strangeReplies(func(s string) {
		mu.Lock()
		defer mu.Unlock()
		strange = append(strange, s)
	})
	for _, prefix := range []string{"", "lock:", "{app}:", "}:{"} {
		client := c.cluster.Client()
		client.AddHook(note)
		client.OnNewNode(func(shard *redis.Client) { shard.AddHook(note) })
		r := c.redlockOf(append([]redis.UniversalClient{client}, c.clients()...), redlock.Config{Fencing: true, KeyPrefix: prefix})
		for _, k := range []string{
			"plain", "{a}b", "a}b", "{}x", "}{", "a{b", "{", "}", "{}", "}}", "{{", "{{a}}", "{}{a}", "a{b}c{d}e", "{a", "a}", "a{}", "}{a}", "ключ}", "sp ace}",
		} {
			k := k + fmt.Sprint(len(prefix)) // all share one record of rounds
			l := c.acquire(r, k, ttl)
			require.Equal(t, quorum.Granted, c.vote("acquire", k), k)
			key := prefix + k
			require.Equal(t, l.Value(), c.client.Get(c.ctx, key).Val())
			require.NoError(t, l.Extend(c.ctx, 2*ttl))
			require.Equal(t, quorum.Granted, c.vote("extend", k), k)

			fence := c.fenceOf(key)
			slot, other := c.client.ClusterKeySlot(c.ctx, key).Val(), c.client.ClusterKeySlot(c.ctx, fence).Val()
			assert.Equal(t, slot, other, "%q and %q", key, fence)
			assert.Equal(t, l.FencingToken(), first(c.client.Get(c.ctx, fence).Int64()))

			require.NoError(t, c.release(l))
			require.Equal(t, quorum.Granted, c.vote("release", k), k)
			c.goneEverywhere(key)
			require.NoError(t, c.client.Del(c.ctx, fence).Err())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Empty(t, strange)
}

func first[T any](v T, _ error) T { return v }

// fenceOf returns the Cluster's only fence.
func (c *clustered) fenceOf(key string) string {
	c.Helper()
	var found []string
	for _, s := range c.cluster.Servers() {
		keys, err := s.Client().Keys(c.ctx, "redlock:fence:*").Result()
		require.NoError(c, err)
		found = append(found, keys...)
	}
	require.Len(c, found, 1, key)
	require.True(c, strings.HasSuffix(strings.TrimSuffix(found[0], "}"), strings.TrimSuffix(key, "}")), found[0])
	return found[0]
}

// strangeReplies is a hook that is called with a server's errors about slots.
type strangeReplies func(string)

func (s strangeReplies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s strangeReplies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		s.look(cmd)
		return err
	}
}

func (s strangeReplies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			s.look(cmd)
		}
		return err
	}
}

func (s strangeReplies) look(cmd redis.Cmder) {
	for _, word := range []string{"MOVED", "ASK", "CROSSSLOT"} {
		if err := cmd.Err(); err != nil && strings.HasPrefix(err.Error(), word) {
			s(err.Error())
		}
	}
}
