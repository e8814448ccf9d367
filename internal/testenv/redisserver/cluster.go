package redisserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// Slots is the number of hash slots of a Redis Cluster.
const Slots = 16384

// Cluster is a Redis Cluster of masters without replicas.
type Cluster struct {
	servers []*Server
	clients closers
}

// StartCluster starts a cluster of so many masters, each with an equal share of the slots, and
// stops it when the test ends. A cluster may have one master.
func StartCluster(tb TB, shards int, opts ...Option) *Cluster {
	tb.Helper()
	return start(tb, func() (*Cluster, error) { return LaunchCluster(shards, opts...) }, (*Cluster).Stop)
}

// LaunchCluster is StartCluster without a test: the caller must stop the cluster. After an
// error nothing is left running. It takes at least 2 s, because a master that has just started
// does not serve a cluster for that long.
func LaunchCluster(shards int, opts ...Option) (*Cluster, error) {
	if newSettings(opts).unix {
		return nil, errors.New("redisserver: a cluster needs TCP, not a unix socket")
	}
	servers, err := Launch(shards, append(opts[:len(opts):len(opts)], clustered)...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{servers: servers}
	if err := c.form(); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func clustered(s *settings) { s.cluster = true }

// form assigns the slots and introduces the servers to each other.
func (c *Cluster) form() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	n := len(c.servers)
	for i, s := range c.servers {
		err := s.Client().ClusterAddSlotsRange(ctx, i*Slots/n, (i+1)*Slots/n-1).Err()
		if err != nil {
			return fmt.Errorf("redisserver: cluster: give slots to %s: %w", s.Addr(), err)
		}
	}
	first := c.servers[0].Client()
	for _, s := range c.servers[1:] {
		// go-redis's ClusterMeet cannot name the bus port.
		err := first.Do(ctx, "cluster", "meet", port.Loopback, s.Port(), s.bus.Port).Err()
		if err != nil {
			return fmt.Errorf("redisserver: cluster: introduce %s: %w", s.Addr(), err)
		}
	}
	return c.AwaitOK()
}

// AwaitOK returns when every server reports that all slots are served and that it knows all
// other servers. Call it after a restart.
func (c *Cluster) AwaitOK() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var g errgroup.Group
	for _, s := range c.servers {
		client := s.Client()
		g.Go(func() error {
			return poll(startTimeout, 20*time.Millisecond, func() error {
				info, err := client.ClusterInfo(ctx).Result()
				if err != nil {
					return fmt.Errorf("redisserver: cluster: ask %s: %w", s.Addr(), err)
				}
				known := fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.servers))
				if !strings.Contains(info, "cluster_state:ok\r\n") || !strings.Contains(info, known) {
					return fmt.Errorf("redisserver: cluster: %s is not ready:\n%s", s.Addr(), info)
				}
				return nil
			})
		})
	}
	return g.Wait()
}

// Servers returns the masters, in the order of their slots.
func (c *Cluster) Servers() []*Server { return c.servers }

// Client returns a cluster client with go-redis's default options, as changed by configure.
// Stop closes it.
func (c *Cluster) Client(configure ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	options := &redis.ClusterOptions{
		Password:  c.servers[0].settings.password,
		TLSConfig: c.servers[0].settings.trust(),
	}
	for _, s := range c.servers {
		options.Addrs = append(options.Addrs, s.Addr())
	}
	for _, configure := range configure {
		configure(options)
	}
	client := redis.NewClusterClient(options)
	c.clients.add(client)
	return client
}

// Stop closes the clients and stops the servers for good. Further calls do nothing.
func (c *Cluster) Stop() {
	c.clients.close()
	stopAll(c.servers)
}
