package subject

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/result"
)

// oneNode is bsm/redislock, which locks on one Redis and is lost with it. It shows the cost of
// a lock that survives no failure. It has the defaults, and a pool in which no caller waits.
type oneNode struct {
	client  *redis.Client
	locks   *redislock.Client
	options *redislock.Options // nil: one attempt
}

var redislockSpec = Spec{
	Name:      result.Redislock,
	Open:      openRedislock,
	Wait:      waitRedislock,
	OneMaster: true,
	Keys:      itself,
	Refused:   is(redislock.ErrNotObtained),
}

func openRedislock(t Target) (Locker, error) {
	c := redis.NewClient(&redis.Options{Addr: t.Addrs[0], PoolSize: t.Callers + 16, Dialer: t.dialer()})
	return &oneNode{client: c, locks: redislock.New(c)}, nil
}

func (o *oneNode) Close() error { return o.client.Close() }

func (o *oneNode) Caller() Caller { return &oneNodeCaller{locks: o.locks, options: o.options} }

type oneNodeCaller struct {
	locks   *redislock.Client
	options *redislock.Options
	lock    *redislock.Lock
}

func (c *oneNodeCaller) Acquire(ctx context.Context, key string) (err error) {
	c.lock, err = c.locks.Obtain(ctx, key, TTL, c.options)
	return err
}

func (c *oneNodeCaller) Release(ctx context.Context) error { return c.lock.Release(ctx) }
