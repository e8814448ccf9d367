package subject

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/bench/result"
)

// redsyncLocker is redsync v4 on go-redis v9, with a pool for each master and the defaults of
// both, except for
//
//   - PoolSize: two connections for each caller, so that no caller waits for one,
//     not even behind a straggler that fail-fast has left;
//   - WithTries(1), which changes nothing if the key is free;
//   - WithExpiry, the ttl that all subjects have.
type redsyncLocker struct {
	redsync *redsync.Redsync
	clients []redis.UniversalClient
	options []redsync.Option
}

var (
	redsyncSpec = Spec{
		Name:         result.Redsync,
		Open:         func(t Target) (Locker, error) { return openRedsync(t), nil },
		Wait:         waitRedsync,
		Keys:         itself,
		Refused:      redsyncRefused,
		AbandonsKeys: true,
	}

	// WithFailFast lets an operation return at the majority. The call to the slowest node
	// continues on its own connection. The release may overtake the SET there, and then the
	// key stays for its ttl.
	redsyncFailFastSpec = Spec{
		Name: result.RedsyncFF,
		Open: func(t Target) (Locker, error) {
			return openRedsync(t, redsync.WithFailFast(true)), nil
		},
		Keys:             itself,
		Refused:          redsyncRefused,
		LeavesStragglers: true,
	}
)

func redsyncRefused(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken)
}

func openRedsync(t Target, options ...redsync.Option) *redsyncLocker {
	l := &redsyncLocker{
		options: append([]redsync.Option{redsync.WithExpiry(TTL), redsync.WithTries(1)}, options...),
	}
	pools := make([]redsyncredis.Pool, len(t.Addrs))
	for i, addr := range t.Addrs {
		c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 2*t.Callers + 16, Dialer: t.dialer()})
		l.clients = append(l.clients, c)
		pools[i] = goredis.NewPool(c)
	}
	l.redsync = redsync.New(pools...)
	return l
}

func (l *redsyncLocker) Close() error { return closeClients(l.clients) }

func (l *redsyncLocker) Caller() Caller { return &redsyncCaller{locker: l} }

type redsyncCaller struct {
	locker *redsyncLocker
	mutex  *redsync.Mutex
}

// Acquire makes a new Mutex, as redsync requires: each holds one key.
func (c *redsyncCaller) Acquire(ctx context.Context, key string) error {
	c.mutex = c.locker.redsync.NewMutex(key, c.locker.options...)
	return c.mutex.LockContext(ctx)
}

func (c *redsyncCaller) Release(ctx context.Context) error {
	ok, err := c.mutex.UnlockContext(ctx)
	if !ok && err == nil {
		return redsync.ErrFailed
	}
	if ok {
		return nil // a majority; err may report the others
	}
	return err
}
