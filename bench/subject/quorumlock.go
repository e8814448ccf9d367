package subject

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/redlock"
)

// quorumlock is this library as in its README, with Open and the zero Config, or with
// guarantees that are off by default.
type quorumlock struct {
	*redlock.Redlock
	ttl time.Duration
}

var (
	quorumlockSpec = quorumlockWith(result.Quorumlock, redlock.Config{})
	fencedSpec     = quorumlockWith(result.Fenced, redlock.Config{Fencing: true})
	guardedSpec    = quorumlockWith(result.Guarded, redlock.Config{RestartGuard: guard})
	fairSpec       = quorumlockWith(result.Fair, redlock.Config{Fair: true})
	bothSpec       = quorumlockWith(result.Both, redlock.Config{Fencing: true, RestartGuard: guard})
)

// guard is short because the comparison starts its masters itself, and has to wait until their
// uptime is longer. The cost of the guard does not depend on it.
const guard = 3 * time.Second

// What the guarantees keep on the masters: a fence for each key, and the server's identity
// record.
const (
	fences = "redlock:fence:"
	record = "redlock:server"
)

// WithConfig is this library with a Config, for a comparison with itself.
func WithConfig(config redlock.Config) Spec { return quorumlockWith(result.Quorumlock, config) }

func quorumlockWith(name result.Subject, config redlock.Config) Spec {
	s := Spec{
		Name:    name,
		Keys:    itself,
		Refused: is(redlock.ErrHeld),
		Guard:   config.RestartGuard,
	}
	if config.Fencing {
		s.Stays = append(s.Stays, fences)
	}
	if config.RestartGuard > 0 {
		s.Stays = append(s.Stays, record)
	}
	ttl := s.LockTTL()
	if s.Guard == 0 && len(s.Stays) == 0 {
		s.Wait = waitWith(config, ttl)
	}
	s.Open = func(t Target) (Locker, error) {
		urls := make([]string, len(t.Addrs))
		for i, addr := range t.Addrs {
			urls[i] = "redis://" + addr
		}
		r, err := redlock.Open(urls, config)
		if err != nil {
			return nil, err
		}
		return quorumlock{r, ttl}, nil
	}
	return s
}

func (q quorumlock) Caller() Caller { return &quorumlockCaller{redlock: q.Redlock, ttl: q.ttl} }

type quorumlockCaller struct {
	redlock *redlock.Redlock
	ttl     time.Duration
	lock    *redlock.Lock
}

func (c *quorumlockCaller) Acquire(ctx context.Context, key string) (err error) {
	c.lock, err = c.redlock.TryAcquire(ctx, key, c.ttl)
	return err
}

func (c *quorumlockCaller) Release(ctx context.Context) error { return c.lock.Release(ctx) }
