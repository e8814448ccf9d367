package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// eachWay has configurations with and without the options that change an acquisition.
var eachWay = map[string]redlock.Config{
	"plain":             {},
	"guard":             {RestartGuard: ttl},
	"fencing":           {Fencing: true},
	"guard and fencing": {RestartGuard: ttl, Fencing: true},
}

// One server under two names has one vote, whatever the names, and operations report that as soon
// as both have answered. On the other master another client holds the key: two votes would be a
// majority.
func TestRealDuplicateUnderTwoNames(t *testing.T) {
	f := startFleet(t, 2, redisserver.Config("unixsocket second.sock"))
	twice := f.servers[0]
	socket := filepath.Join(twice.Dir(), "second.sock")
	local := net.JoinHostPort("localhost", strconv.Itoa(twice.Port()))
	proxy := redisserver.NewLink(t, twice.Addr()).Addr()
	require.NoError(t, f.admin[1].Set(f.ctx, key, "somebody else's", time.Hour).Err())

	for name, second := range map[string]struct {
		addr, url string
		options   func(*redis.Options)
	}{
		"localhost":   {local, "redis://" + local, func(o *redis.Options) { o.Addr = local }},
		"unix socket": {socket, "unix://" + socket, func(o *redis.Options) { o.Network, o.Addr = "unix", socket }},
		"proxy":       {proxy, "redis://" + proxy, func(o *redis.Options) { o.Addr = proxy }},
	} {
		for way, cfg := range eachWay {
			for how, make := range map[string]func() (*redlock.Redlock, error){
				"open": func() (*redlock.Redlock, error) {
					return redlock.Open([]string{twice.URL(), f.servers[1].URL(), second.url}, f.config(cfg))
				},
				"new": func() (*redlock.Redlock, error) {
					return redlock.New(append(f.clients(), twice.Client(second.options)), f.config(cfg))
				},
			} {
				t.Run(fmt.Sprint(name, ", ", way, ", ", how), func(t *testing.T) {
					r, err := make()
					require.NoError(t, err)
					defer func() { assert.NoError(t, r.Close()) }()
					f.duplicate(r, key)
					for range 2 {
						for _, acquire := range []func(context.Context, string, time.Duration) (*redlock.Lock, error){r.TryAcquire, r.Acquire} {
							_, err = acquire(f.ctx, key, ttl)
							require.ErrorIs(t, err, redlock.ErrDuplicateNode)
							assert.EqualError(t, err, `redlock: acquire "orders": one node is listed twice: `+
								twice.Addr()+" and "+second.addr+" are the same server")
						}
					}
					f.gone(key, 0)
				})
			}
		}
	}
}

// duplicate waits until a Redlock has found the duplicate. The first operation waits for the other
// nodes, but not long. No operation succeeds before.
func (f *fleet) duplicate(r *redlock.Redlock, key string) {
	f.Helper()
	f.eventually("it finds out", func() bool {
		_, err := r.TryAcquire(f.ctx, key, ttl)
		require.Error(f, err)
		return errors.Is(err, redlock.ErrDuplicateNode)
	})
}

// The same holds for a Cluster that two clients know by different seeds.
func TestRealDuplicateOfAClusterBySeveralSeeds(t *testing.T) {
	c := startClustered(t, 2)
	for way, cfg := range eachWay {
		t.Run(way, func(t *testing.T) {
			for _, shard := range c.keys(1) {
				key := shard[0]
				var nodes []redis.UniversalClient
				for _, seed := range c.cluster.Servers() {
					nodes = append(nodes, c.cluster.Client(func(o *redis.ClusterOptions) { o.Addrs = []string{seed.Addr()} }))
				}
				nodes = append(nodes, c.clients()[0])
				require.NoError(t, c.admin[0].Set(c.ctx, key, "somebody else's", time.Hour).Err())
				r := c.redlockOf(nodes, cfg)
				c.duplicate(r, key)
				for range 2 {
					_, err := r.TryAcquire(c.ctx, key, ttl)
					require.ErrorIs(t, err, redlock.ErrDuplicateNode)
					for _, seed := range c.cluster.Servers() {
						assert.ErrorContains(t, err, "cluster "+seed.Addr())
					}
				}
				c.eventually("nothing is left", func() bool { return c.client.Exists(c.ctx, key).Val() == 0 })
			}
		})
	}
}

// The guard needs one more right, and its error names it. Without the guard, a user that lacks the
// right can do everything as before.
func TestRealGuardNeedsInfo(t *testing.T) {
	f := startFleet(t, 3, redisserver.ACL(
		user("locker", minimalRights...), user("asking", append([]string{"+info", "+time"}, minimalRights...)...)))
	cfg := redlock.Config{KeyPrefix: "lock:", RestartGuard: realGuard}

	f.allGrant(f.redlockOf(f.clients(as("locker")), prefixed), "without the guard")

	r := f.redlockOf(f.clients(as("locker")), cfg)
	for range 2 {
		_, err := r.TryAcquire(f.ctx, key, realGuard)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.ErrorContains(t, err, "does not permit INFO, which Config.RestartGuard needs (ACL: +info): NOPERM")
		assert.NotContains(t, fmt.Sprint(err), aclPassword)
		for i, n := range r.Nodes() {
			// Two nodes are enough for the decision.
			f.eventually("every node has said so", func() bool { n = r.Nodes()[i]; return len(n.Servers) == 1 })
			assert.ErrorContains(t, n.Servers[0].Err, "+info")
		}
	}
	f.gone("lock:" + key)

	asking := f.beside()
	permitted := asking.redlockOf(f.clients(as("asking")), cfg)
	asking.counted(permitted, "with the right")
	for _, n := range permitted.Nodes() {
		assert.NoError(t, n.Servers[0].Err)
	}
	_, err := r.TryAcquire(f.ctx, key, realGuard)
	require.ErrorIs(t, err, redlock.ErrNoQuorum, "not for want of time")
}
