package subject

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/redlock"
)

// Waiting lists the subjects that can wait for a held key.
func Waiting() (names []result.Subject) {
	for _, s := range All() {
		if s.Wait != nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// waitWith opens this library on clients whose commands are counted. It sets the same options
// as Open.
func waitWith(config redlock.Config, ttl time.Duration) func(Target) (Locker, error) {
	return func(t Target) (Locker, error) {
		nodes := make([]redis.UniversalClient, len(t.Addrs))
		for i, addr := range t.Addrs {
			nodes[i] = redis.NewClient(&redis.Options{
				Addr: addr, Dialer: t.Sent.dial, Protocol: 2,
				ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
				DialTimeout: time.Second, ReadTimeout: time.Second,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
		}
		r, err := redlock.New(nodes, config)
		if err != nil {
			return nil, errors.Join(err, closeClients(nodes))
		}
		return waiting{quorumlock{r, ttl}, nodes}, nil
	}
}

// waiting is this library on clients of the comparison.
type waiting struct {
	quorumlock
	nodes []redis.UniversalClient
}

func (w waiting) Close() error { return errors.Join(w.quorumlock.Close(), closeClients(w.nodes)) }

func (w waiting) Caller() Caller {
	return &waitingCaller{quorumlockCaller{redlock: w.Redlock, ttl: w.ttl}}
}

type waitingCaller struct{ quorumlockCaller }

func (c *waitingCaller) Acquire(ctx context.Context, key string) (err error) {
	c.lock, err = c.redlock.Acquire(ctx, key, c.ttl)
	return err
}

func closeClients(clients []redis.UniversalClient) error {
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// waitRedsync never gives up; its pauses of 50 to 250 ms are redsync's defaults.
func waitRedsync(t Target) (Locker, error) {
	return openRedsync(t, redsync.WithTries(math.MaxInt32)), nil
}

// redislockPause is the pause in the examples of its documentation. By default it does not
// wait.
const redislockPause = 100 * time.Millisecond

func waitRedislock(t Target) (Locker, error) {
	l, err := openRedislock(t)
	if err == nil {
		l.(*oneNode).options = &redislock.Options{RetryStrategy: redislock.LinearBackoff(redislockPause)}
	}
	return l, err
}

func waitRueidis(t Target) (Locker, error) {
	l, err := openRueidislock(t)
	if err != nil {
		return nil, err
	}
	return ownModelWaiting{l.(ownModel)}, nil
}

type ownModelWaiting struct{ ownModel }

func (o ownModelWaiting) Caller() Caller {
	return &ownModelWaitingCaller{ownModelCaller{locker: o.locker}}
}

type ownModelWaitingCaller struct{ ownModelCaller }

func (c *ownModelWaitingCaller) Acquire(ctx context.Context, key string) (err error) {
	_, c.release, err = c.locker.WithContext(ctx, key)
	return err
}
