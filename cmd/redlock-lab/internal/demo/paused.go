package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/fence"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// write is the result of a write under a token.
type write struct {
	Client string `json:"client"`
	Token  int64  `json:"token"`
	Value  string `json:"value"`
	Error  string `json:"error,omitempty"`
}

// paused is step 6: a holder sleeps through the end of its lock, and then writes. The storage is a
// separate server, which checks tokens.
func (o *outage) paused(ctx context.Context, s *step) (err error) {
	storage, err := redlocktest.New(1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close()) }()
	data := storage.Master(0).Client()
	guard, err := fence.NewRedis(data)
	if err != nil {
		return err
	}

	a, err := openClient("A", o.urls, redlock.Config{Fencing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := openClient("B", o.urls, redlock.Config{Fencing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	old, r, err := a.acquire(ctx, outageKey, minTTL)
	s.add(r)
	if err != nil {
		return err
	}
	select { // A does not watch this: it is paused
	case <-old.Context().Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := o.nothingLeft(ctx, 0, 1, 2, 3, 4); err != nil {
		return err
	}
	now, r, err := b.acquire(ctx, outageKey, o.ttl)
	s.add(r)
	if err != nil {
		return err
	}
	if now.FencingToken() <= old.FencingToken() {
		return fmt.Errorf("the later token, %d, is not above the earlier one, %d", now.FencingToken(), old.FencingToken())
	}
	if err := s.write(ctx, guard, "B", now, "paid by B"); err != nil {
		return err
	}
	if err := s.write(ctx, guard, "A", old, "paid by A"); !errors.Is(err, fence.ErrStaleToken) {
		return unwanted(err, fence.ErrStaleToken)
	}
	if value, err := data.Get(ctx, outageKey).Result(); err != nil || value != "paid by B" {
		return errors.Join(fmt.Errorf("the storage has %q, not what B wrote", value), err)
	}
	s.Note = "It means: no lock can stop a process that sleeps and then goes on. The storage can, as B's " +
		"token is higher than A's: it has seen the one, and refuses the other. What B wrote is there still."
	_, err = b.release(ctx, now, 0)
	return err
}

// write lets a client write to the storage under its lock's token.
func (s *step) write(ctx context.Context, guard *fence.RedisGuard, client string, l *redlock.Lock, value string) error {
	w := write{Client: client, Token: l.FencingToken(), Value: value}
	err := guard.Set(ctx, outageKey, value, 0, l.FencingToken())
	if err != nil {
		w.Error = err.Error()
	}
	s.Writes = append(s.Writes, w)
	return err
}

// forgetful is step 7: a master comes back without its memory. It would let a second holder in, but
// the restart guard does not let it vote.
func (o *outage) forgetful(ctx context.Context, s *step) (err error) {
	// The earlier steps have just restarted masters, which would have no vote. With their clocks
	// ahead they have been up for long.
	for _, m := range o.masters.All() {
		m.JumpClock(time.Hour)
	}
	// A does not reach the last two: its requests never arrive.
	var nodes []redis.UniversalClient
	for i, m := range o.masters.All() {
		login, err := redis.ParseURL(o.urls[i])
		if err != nil {
			return err
		}
		path := m.Path()
		path.Hold(i > 2, i > 2)
		nodes = append(nodes, path.Client(func(opts *redis.Options) {
			opts.Username, opts.Password = login.Username, login.Password
			opts.MaxRetries, opts.DialTimeout, opts.ReadTimeout = -1, cutOff, cutOff
		}))
	}
	guarded := redlock.Config{RestartGuard: o.ttl}
	a, err := newClient("A", nodes, guarded)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	held, r, err := a.acquire(ctx, outageKey, o.ttl)
	s.add(r)
	if err != nil {
		return err
	}

	if err := o.masters.Master(2).RestartEmpty(); err != nil {
		return err
	}
	for _, other := range []struct {
		name string
		cfg  redlock.Config
		want error
	}{{"B without the guard", redlock.Config{}, nil}, {"B with the guard", guarded, redlock.ErrHeld}} {
		b, err := openClient(other.name, o.urls, other.cfg)
		if err != nil {
			return err
		}
		second, r, err := b.acquire(ctx, outageKey, o.ttl)
		s.add(r)
		if second != nil {
			if held.Context().Err() != nil {
				return errors.New("the lock of A ended before B had one")
			}
			if _, err := b.release(ctx, second, 0); err != nil {
				return err
			}
		}
		if err := b.Close(); err != nil {
			return err
		}
		if !errors.Is(err, other.want) {
			return unwanted(err, other.want)
		}
	}
	s.Note = "It means: A holds the lock by masters 1 to 3, and 3 has forgotten it. Without the guard B " +
		"got it too, by 3, 4 and 5: two holders. With RestartGuard, which is the longest ttl in use, " +
		"the vote of a master that has just started does not count until A's lock would be over."
	return nil
}
