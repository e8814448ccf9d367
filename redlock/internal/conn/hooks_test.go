package conn_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A hook that puts a prefix in front of keys, as there are in the wild, changes the
// arguments of a command, which the connection uses again for the next key. Two
// clients with such hooks exclude each other, on the keys that the hook makes.
func TestHookMayPrefixKeys(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		prefix := spy.Before(func(cmd redis.Cmder) {
			at := map[string]int{"set": 1, "eval": 3, "evalsha": 3}[cmd.Name()]
			if key, ok := cmd.Args()[at].(string); ok && at > 0 {
				cmd.Args()[at] = "app:" + key
			}
		})
		hooked := func() *redlock.Redlock {
			var nodes []redis.UniversalClient
			for _, m := range b.Masters.All() {
				client := m.Client()
				client.AddHook(prefix)
				nodes = append(nodes, client)
			}
			r, err := redlock.New(nodes, redlock.Config{})
			require.NoError(t, err)
			b.Cleanup(func() { require.NoError(t, r.Close()) })
			return r
		}
		one, other := hooked(), hooked()
		for _, key := range []string{"first", "second", "third"} {
			l, err := one.TryAcquire(ctx, key, ttl)
			require.NoError(t, err)
			b.Settle()
			_, err = other.TryAcquire(ctx, key, ttl)
			require.ErrorIs(t, err, redlock.ErrHeld, key)
			assert.Len(t, b.Has("app:"+key), 3)
			assert.Empty(t, b.Has(key))
			require.NoError(t, l.Extend(ctx, 2*ttl))
			require.NoError(t, l.Release(ctx))
			b.Settle()
			assert.Empty(t, b.Has("app:"+key))
		}
	})
}

// A hook that traces commands sees keys and ttls, and no value.
func TestHookSeesNoValue(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		var mu sync.Mutex
		var said []string
		var nodes []redis.UniversalClient
		for _, m := range b.Masters.All() {
			client := m.Client()
			client.AddHook(spy.Before(func(cmd redis.Cmder) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, cmd.String())
			}))
			nodes = append(nodes, client)
		}
		r, err := redlock.New(nodes, redlock.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		l, err := r.TryAcquire(ctx, "traced", ttl)
		require.NoError(t, err)
		require.NoError(t, l.Extend(ctx, 2*ttl))
		require.NoError(t, l.Release(ctx))
		b.Settle()

		mu.Lock()
		defer mu.Unlock()
		sets := 0
		for _, s := range said {
			assert.NotContains(t, s, l.Value())
			if strings.HasPrefix(s, "set traced ") && strings.Contains(s, " nx px 10000") {
				sets++
			}
		}
		assert.Equal(t, 3, sets, "%v", said)
	})
}

// go-redis drops the hooks of a client to which a bound for reading is given.
func TestClientThatReadsWithoutEndIsRefused(t *testing.T) {
	for _, timeout := range []time.Duration{-1, -2} {
		for _, client := range []redis.UniversalClient{
			redis.NewClient(&redis.Options{ReadTimeout: timeout}),
			redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}, ReadTimeout: timeout}),
		} {
			_, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
			assert.ErrorContains(t, err, "nodes[0] has no ReadTimeout")
			require.NoError(t, client.Close())
		}
	}
}

// The hooks of a ClusterClient itself do not see the commands of locks. One that only looks
// is no harm; one that changes keys, for commands or for pipelines, must not be missed.
func TestHookOfAClusterThatChangesKeysIsRefused(t *testing.T) {
	looks := spy.Before(func(redis.Cmder) {})
	prefixes := spy.Before(func(cmd redis.Cmder) {
		if cmd.Name() == "set" {
			cmd.Args()[1] = "app:" + cmd.Args()[1].(string)
		}
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}})
	defer func() { require.NoError(t, client.Close()) }()
	for range 2 { // what New leaves behind hides nothing from the next
		r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
		require.NoError(t, err)
		require.NoError(t, r.Close())
		client.AddHook(looks)
	}
	client.AddHook(prefixes)
	_, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{})
	assert.ErrorContains(t, err, "nodes[0] has a hook of its own that changes a command's key")
}
