package redlock

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// oneShard is a client of a Cluster of one shard, which is the master at *shard: "0" and so
// on. The masters know no sharded channels, so that all channels are plain ones.
func oneShard(masters *redlocktest.Masters, shard *string) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: *shard + ":1"}}}}, nil
		},
		NewClient: func(opt *redis.Options) *redis.Client {
			which, _, _ := strings.Cut(opt.Addr, ":")
			i, _ := strconv.Atoi(which)
			path := masters.Master(i).Path()
			return path.Client(func(o *redis.Options) {
				dial := o.Dialer
				o.Addr = opt.Addr
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					return plainChannels{conn}, err
				}
			})
		},
	})
}

// plainChannels is a connection on which SSUBSCRIBE is SUBSCRIBE.
type plainChannels struct{ net.Conn }

func (c plainChannels) Write(p []byte) (int, error) {
	_, err := c.Conn.Write(bytes.ReplaceAll(p, []byte("$10\r\nssubscribe"), []byte("$9\r\nsubscribe")))
	return len(p), err
}

// A Cluster's channel is that of some waits, a single server's is that of all. What happens
// to a channel is told to its own waits, and to no other.
func TestNewsOfAChannelAreToldToItsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 2)
		shard := "1"
		client := oneShard(masters, &shard)
		defer func() { assert.NoError(t, client.Close()) }()
		r, err := New([]redis.UniversalClient{masters.Master(0).Client(), client}, Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, r.Close()) }()

		keys := []string{"{user:1}:orders", "{user:1}:carts", "{user:2}:orders"}
		var waits []*wait
		for _, key := range keys {
			w := r.newWait(key)
			r.ears.begin(w)
			waits = append(waits, w)
		}
		told := func(node int, key string) (all []string) {
			synctest.Wait() // for what the subscriptions have to say
			for _, w := range waits {
				w.mu.Lock()
				w.nodes[node].in = true
				w.mu.Unlock()
			}
			r.ears.lost(node, r.ears.stations[node].channel(key))
			for _, w := range waits {
				w.mu.Lock()
				if !w.nodes[node].in {
					all = append(all, w.key)
				}
				w.mu.Unlock()
			}
			return all
		}
		assert.Equal(t, keys, told(0, keys[0]), "a single server has one channel")
		assert.Equal(t, keys[:2], told(1, keys[0]), "of one slot")
		assert.Equal(t, keys[2:], told(1, keys[2]))
		r.ears.end(waits[0])
		assert.Equal(t, keys[1:2], told(1, keys[0]))
		for _, w := range waits {
			r.ears.end(w)
		}
		assert.Empty(t, r.ears.on, "channels without waits")
	})
}

// A Cluster's client learns of another master, and the one before it lives on without having
// heard of that. Waits listen where their commands go, not where they once began to.
func TestAWaitListensToTheMasterThatItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 2)
		shard := "0"
		client := oneShard(masters, &shard)
		defer func() { assert.NoError(t, client.Close()) }()
		r, err := New([]redis.UniversalClient{client}, Config{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, r.Close()) }()
		w := r.newWait("key")
		r.ears.begin(w)
		synctest.Wait()
		require.True(t, r.ears.hears(0, w))
		channel := r.ears.sharded("key")
		hearing := func() (all []int) {
			for _, m := range masters.All() {
				all = append(all, m.Miniredis().PubSubNumSub(channel)[channel])
			}
			return all
		}
		require.Equal(t, []int{1, 0}, hearing())
		w.mu.Lock()
		w.nodes[0].in = true
		w.mu.Unlock()

		shard = "1"
		client.ReloadState(t.Context())
		time.Sleep(time.Second)
		r.ears.tune(w) // as whenever it asks
		synctest.Wait()
		assert.True(t, r.ears.hears(0, w))
		assert.Equal(t, []int{0, 1}, hearing())
		w.mu.Lock()
		assert.False(t, w.nodes[0].in, "the new master has no place of it")
		w.mu.Unlock()
		r.ears.end(w)
	})
}
