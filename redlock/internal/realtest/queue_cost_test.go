package realtest_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

var scriptCalls = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`)

// scripts counts the scripts that servers have run.
func (c *clustered) scripts(servers ...*redisserver.Server) (n int) {
	c.Helper()
	for _, s := range servers {
		stats, err := s.Client().Info(c.ctx, "commandstats").Result()
		require.NoError(c, err)
		if calls := scriptCalls.FindStringSubmatch(stats); calls != nil {
			one, err := strconv.Atoi(calls[1])
			require.NoError(c, err)
			n += one
		}
	}
	return n
}

// A wait on a Cluster asks for its queue entry again when its own channel is confirmed, and not
// when another wait's is. So n waits cost a Cluster a number of scripts that grows with n, not with
// the square of n.
func TestRealAcquireOfManyKeysOnAClusterHasLinearCost(t *testing.T) {
	const many, more = 300, 10
	c := startClustered(t, 2)
	holder, r := c.redlock(redlock.Config{}), c.redlock(redlock.Config{})
	held := func(i int) string {
		k := fmt.Sprint("held ", i)
		c.acquire(holder, k, time.Hour)
		c.round("acquire", k)
		return k
	}
	var keys []string
	for i := range many + more {
		keys = append(keys, held(i))
	}
	for _, k := range keys[:many] {
		c.wait(r, k, ttl)
	}
	c.heardInCluster(many)
	for _, k := range keys[:many] {
		c.inTheQueue(k, 1)
	}

	before, began := c.scripts(c.cluster.Servers()...), time.Now()
	for i, k := range keys[many:] {
		c.wait(r, k, ttl)
		c.heardInCluster(many + i + 1)
		c.inTheQueue(k, 1)
	}
	// A wait looks at one node a second at most, and asks a few times for its queue entry.
	looks := int(time.Since(began)/time.Second+1) * many
	assert.Less(t, c.scripts(c.cluster.Servers()...)-before, looks+10*more)
}

// A shard that is down is dialled again and again. Waits for keys of the other shards are not
// notified of each failed dial, and send nothing.
func TestRealAcquireBesideAShardThatIsDownCostsNothing(t *testing.T) {
	const many = 100
	c := startClustered(t, 2, redisserver.Config("cluster-require-full-coverage no"))
	var dials atomic.Int32 // to the shard that is down
	down := c.cluster.Servers()[1]
	cluster := c.cluster.Client(func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
			if err != nil && addr == down.Addr() {
				dials.Add(1)
			}
			return conn, err
		}
	})
	holder := c.redlock(redlock.Config{})
	r := c.redlockOf(append([]redis.UniversalClient{cluster}, c.clients()...), redlock.Config{})
	shards := c.keys(many)
	keys := append(shards[0], shards[1][0])
	for _, k := range keys {
		c.acquire(holder, k, time.Hour)
		c.round("acquire", k)
	}
	for _, k := range keys {
		c.wait(r, k, ttl)
	}
	c.heardInCluster(len(keys))
	for _, k := range keys {
		c.inTheQueue(k, 1)
	}

	before := c.scripts(c.cluster.Servers()[0])
	down.Kill()
	c.eventually("the shard is dialled ten times", func() bool { return dials.Load() >= 10 })
	assert.Less(t, c.scripts(c.cluster.Servers()[0])-before, 3*many, "a wait looks at a node once or twice in ten seconds")
}
