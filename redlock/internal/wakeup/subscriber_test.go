package wakeup

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
	"github.com/quorumlock/redlock/redlock/internal/conn"
)

// plainChannels has a client send SUBSCRIBE for SSUBSCRIBE, as the masters know no sharded
// channels.
func plainChannels(o *redis.Options) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return plainConn{conn}, err
	}
}

type plainConn struct{ net.Conn }

func (c plainConn) Write(p []byte) (int, error) {
	_, err := c.Conn.Write(bytes.ReplaceAll(p, []byte("$10\r\nssubscribe"), []byte("$9\r\nsubscribe")))
	return len(p), err
}

// subscriberOf returns a Subscriber to nodes, in virtual time.
func subscriberOf(t *testing.T, clients ...redis.UniversalClient) *Subscriber {
	cfg := Config{ID: "0123456789abcdef", NodeTimeout: 200 * time.Millisecond, Clock: clock.System(), Log: asynclog.New(nil), Leave: func(int, string, int64) {}}
	for _, c := range clients {
		n, err := conn.NewNode(c, conn.Config{NodeTimeout: cfg.NodeTimeout, Clock: cfg.Clock})
		require.NoError(t, err)
		cfg.Nodes = append(cfg.Nodes, n)
	}
	return New(cfg)
}

// waiter counts the reports about each node.
type waiter struct{ found, lost [2]int }

func (w *waiter) Subscribed(node int)            { w.found[node]++ }
func (w *waiter) Unsubscribed(node int)          { w.lost[node]++ }
func (*waiter) Woken(time.Time, int, int64) bool { return true }
func (*waiter) Second(time.Time, int64)          {}

func (*waiter) Expires(time.Time, int, int64, time.Duration) {}
func (*waiter) Forgettable(time.Time) bool                   { return true }

// A Cluster's channel serves some waits, a single server's channel all of them. A change of a
// channel is reported to its own waits, and to no other.
func TestSubscriberNotifiesTheWaitsOfAChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := inmemory.StartVirtual(t, 2)
		client, _ := inmemory.MovingShard(masters.Master(1), "pod:1", plainChannels)
		defer func() { assert.NoError(t, client.Close()) }()
		s := subscriberOf(t, masters.Master(0).Client(), client)
		defer func() { s.Close(); s.Wait() }()

		keys := []string{"{user:1}:orders", "{user:1}:carts", "{user:2}:orders"}
		waits := map[string]*waiter{}
		for _, key := range keys {
			waits[key] = &waiter{}
			s.Begin(key, waits[key])
		}
		reported := func(node int, key string) (all []string) {
			synctest.Wait() // for the reports of the subscriptions
			for _, w := range waits {
				w.lost[node] = 0
			}
			s.lost(node, s.sources[node].channel(key))
			for _, key := range keys {
				if waits[key].lost[node] > 0 {
					all = append(all, key)
				}
			}
			return all
		}
		assert.Equal(t, keys, reported(0, keys[0]), "a single server has one channel")
		assert.Equal(t, keys[:2], reported(1, keys[0]), "of one slot")
		assert.Equal(t, keys[2:], reported(1, keys[2]))
		s.End(keys[0], waits[keys[0]])
		assert.Equal(t, keys[1:2], reported(1, keys[0]))
		for _, key := range keys {
			s.End(key, waits[key])
		}
		assert.Empty(t, s.byChannel, "channels without waits")
	})
}

// A Cluster's client learns of another master, while the one before it lives on and does not
// know of that. The subscription is to the master that operations go to.
func TestSubscriberFollowsTheMasterOfASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := inmemory.StartVirtual(t, 2)
		client, move := inmemory.MovingShard(masters.Master(0), "pod:0", plainChannels)
		defer func() { assert.NoError(t, client.Close()) }()
		s := subscriberOf(t, client)
		defer func() { s.Close(); s.Wait() }()
		w := &waiter{}
		s.Begin("key", w)
		synctest.Wait()
		require.True(t, s.Subscribed(0, "key"))
		channel := s.sharded("key")
		subscribers := func() (all []int) {
			for _, m := range masters.All() {
				all = append(all, m.Miniredis().PubSubNumSub(channel)[channel])
			}
			return all
		}
		require.Equal(t, []int{1, 0}, subscribers())
		require.Zero(t, w.lost[0])

		move(masters.Master(1), "pod:1")
		time.Sleep(time.Second)
		s.Subscribe("key") // as a wait does whenever it asks
		synctest.Wait()
		assert.True(t, s.Subscribed(0, "key"))
		assert.Equal(t, []int{0, 1}, subscribers())
		assert.Positive(t, w.lost[0], "the new master has no entry of the wait")
		s.End("key", w)
	})
}

// A Cluster's master gets a new address again and again, as a Kubernetes pod does. The
// subscriptions do not grow in number.
func TestSubscriberForgetsTheMastersThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := inmemory.StartVirtual(t, 1)
		client, move := inmemory.MovingShard(masters.Master(0), "pod:0")
		defer func() { assert.NoError(t, client.Close()) }()
		s := subscriberOf(t, client)
		defer func() { s.Close(); s.Wait() }()
		at := s.sources[0].(*shards)
		for i := range 50 {
			move(masters.Master(0), fmt.Sprint("pod:", i))
			time.Sleep(500 * time.Millisecond)
			s.Subscribe("key")
			synctest.Wait()
			at.mu.Lock()
			assert.LessOrEqual(t, len(at.all), 1, "subscriptions")
			at.mu.Unlock()
		}
	})
}
