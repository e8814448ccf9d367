package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// onMasters is the demo on the user's own masters. It breaks nothing, and no other client uses its
// key.
type onMasters struct {
	a, b *client
	key  string
	ttl  time.Duration
	need int
	held *redlock.Lock
}

func demoOnMasters(ctx context.Context, urls []string, prefix string, ttl time.Duration, out presenter) (err error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return err
	}
	m := &onMasters{key: prefix + "redlock-demo:" + id.String(), ttl: ttl, need: quorum.Size(len(urls))}
	if m.a, err = openClient("A", urls, redlock.Config{}); err != nil {
		return masterlist.Of("--nodes", urls).Wrong(err)
	}
	defer func() { err = errors.Join(err, m.a.Close()) }()
	if m.b, err = openClient("B", urls, redlock.Config{}); err != nil {
		return masterlist.Of("--nodes", urls).Wrong(err)
	}
	defer func() { err = errors.Join(err, m.b.Close()) }()

	return perform(ctx,
		fmt.Sprintf("Masters: %d, of which %d must grant the lock.\nKey: %s", len(urls), m.need, m.key),
		[]scene{
			{"Client A acquires the lock", m.acquire},
			{"Client B wants it too and is refused", m.contend},
			{"A extends it", m.extend},
			{"A releases it", m.release},
		}, out)
}

func (m *onMasters) acquire(ctx context.Context, s *step) (err error) {
	var r round
	m.held, r, err = m.a.acquire(ctx, m.key, m.ttl)
	return m.check(s, r, err)
}

func (m *onMasters) contend(ctx context.Context, s *step) error {
	_, r, err := m.b.acquire(ctx, m.key, m.ttl)
	s.add(r)
	if !errors.Is(err, redlock.ErrHeld) {
		return unwanted(err, redlock.ErrHeld)
	}
	return nil
}

func (m *onMasters) extend(ctx context.Context, s *step) error {
	r, err := m.a.extend(ctx, m.held, m.ttl)
	return m.check(s, r, err)
}

func (m *onMasters) release(ctx context.Context, s *step) error {
	r, err := m.a.release(ctx, m.held, releasedWait)
	return m.check(s, r, err)
}

// check requires a majority of grants. A silent node has no vote; the lock goes on without it, and
// so does the demo.
func (m *onMasters) check(s *step, r round, err error) error {
	s.add(r)
	if err == nil && r.ballot != nil && r.Granted < m.need {
		err = fmt.Errorf("%s: %d masters granted it, %d are needed", r.Op, r.Granted, m.need)
	}
	return err
}
