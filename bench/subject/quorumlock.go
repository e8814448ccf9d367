package subject

import (
	"context"

	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/redlock"
)

// quorumlock is this library as in its README: Open, and the zero Config.
type quorumlock struct{ *redlock.Redlock }

var quorumlockSpec = Spec{
	Name:    result.Quorumlock,
	Open:    openQuorumlock,
	Keys:    itself,
	Refused: is(redlock.ErrHeld),
}

func openQuorumlock(t Target) (Locker, error) {
	urls := make([]string, len(t.Addrs))
	for i, addr := range t.Addrs {
		urls[i] = "redis://" + addr
	}
	r, err := redlock.Open(urls, redlock.Config{})
	if err != nil {
		return nil, err
	}
	return quorumlock{r}, nil
}

func (q quorumlock) Caller() Caller { return &quorumlockCaller{redlock: q.Redlock} }

type quorumlockCaller struct {
	redlock *redlock.Redlock
	lock    *redlock.Lock
}

func (c *quorumlockCaller) Acquire(ctx context.Context, key string) (err error) {
	c.lock, err = c.redlock.TryAcquire(ctx, key, TTL)
	return err
}

func (c *quorumlockCaller) Release(ctx context.Context) error { return c.lock.Release(ctx) }
