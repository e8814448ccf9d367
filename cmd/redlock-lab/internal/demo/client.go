package demo

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

// cutOff is the timeout of a client for masters that it cannot reach.
const cutOff = masterlist.NodeTimeout / 4

// client is one user of the lock: a Redlock with connections of its own. Its operations also return
// the answer of each node.
type client struct {
	*redlock.Redlock
	name   string
	traces recorder
}

func openClient(name string, urls []string, cfg redlock.Config) (*client, error) {
	return made(name, cfg, func(cfg redlock.Config) (*redlock.Redlock, error) { return redlock.Open(urls, cfg) })
}

func newClient(name string, nodes []redis.UniversalClient, cfg redlock.Config) (*client, error) {
	return made(name, cfg, func(cfg redlock.Config) (*redlock.Redlock, error) { return redlock.New(nodes, cfg) })
}

func made(name string, cfg redlock.Config, by func(redlock.Config) (*redlock.Redlock, error)) (*client, error) {
	c := &client{name: name}
	cfg.NodeTimeout, cfg.Trace = masterlist.NodeTimeout, c.traces.record
	var err error
	if c.Redlock, err = by(cfg); err != nil {
		return nil, err
	}
	return c, nil
}

// acquire makes one attempt. The round has its error too.
func (c *client) acquire(ctx context.Context, key string, ttl time.Duration) (*redlock.Lock, round, error) {
	traced := c.traces.expect("acquire")
	lock, err := c.TryAcquire(ctx, key, ttl)
	t, _ := await(ctx, traced, answersWait)
	r := newRound(c.name, "acquire", key, t, err)
	r.worth = newWorth(ttl, t.Elapsed, err)
	if lock != nil {
		r.Token = lock.FencingToken()
	}
	return lock, r, err
}

func (c *client) extend(ctx context.Context, lock *redlock.Lock, ttl time.Duration) (round, error) {
	traced := c.traces.expect("extend")
	err := lock.Extend(ctx, ttl)
	t, _ := await(ctx, traced, answersWait)
	r := newRound(c.name, "extend", lock.Key(), t, err)
	r.worth = newWorth(ttl, t.Elapsed, err)
	return r, err
}

// release waits up to wait for the nodes' answers. For a silent node the release stays pending
// until the key's ttl is over, as that node may still have the key.
func (c *client) release(ctx context.Context, lock *redlock.Lock, wait time.Duration) (round, error) {
	traced := c.traces.expect("release")
	clk := clock.System()
	start := clk.Now()
	err := lock.Release(ctx)
	elapsed := clk.Now().Sub(start)
	t, all := await(ctx, traced, wait)
	if !all {
		t.Elapsed = elapsed
	}
	return newRound(c.name, "release", lock.Key(), t, err), err
}
