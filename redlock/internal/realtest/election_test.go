package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// Ten processes want to lead, each for one term. One leads at a time, each in its turn, with growing
// tokens, although two of five masters are killed meanwhile. Everybody can see who leads.
func TestRealLeadOneAtATime(t *testing.T) {
	f := startFleet(t, 5)
	const candidates = 10
	var mu sync.Mutex
	var leading, terms int
	var token int64
	g, ctx := errgroup.WithContext(f.ctx)
	for i := range candidates {
		locks := f.redlock(redlock.Config{Fencing: true, Owner: fmt.Sprint("candidate ", i)})
		e := election.New(locks, key, time.Minute)
		g.Go(func() error {
			return e.Lead(ctx, func(ctx context.Context) error {
				term, ok := redlock.FromContext(ctx, key)
				if !ok {
					return errors.New("no term in the context")
				}
				mu.Lock()
				leading++
				terms++
				alone, grows, n := leading == 1, term.FencingToken() > token, terms
				token = term.FencingToken()
				mu.Unlock()
				defer func() { mu.Lock(); leading--; mu.Unlock() }()
				if !alone || !grows {
					return fmt.Errorf("alone: %v, the token grows: %v", alone, grows)
				}
				if n == 3 {
					f.kill(1, 3)
				}
				leader, err := e.Leader(ctx)
				if err != nil {
					return err
				}
				if leader.Owner != fmt.Sprint("candidate ", i) || leader.Holder != term.Holder() {
					return fmt.Errorf("the leader is said to be %+v", leader)
				}
				return e.IsLeader(ctx)
			})
		})
	}
	require.NoError(t, g.Wait())
	assert.Equal(t, candidates, terms)
	f.gone(key, 0, 2, 4)
	_, err := election.New(f.redlock(redlock.Config{}), key, time.Minute).Leader(f.ctx)
	assert.ErrorIs(t, err, election.ErrNoLeader)
}

// A leader is cut off from its masters. Its term ends before the next one begins, and it leads
// again after its links are back. An observer sees each of the terms.
func TestRealLeadAfterALoss(t *testing.T) {
	f := startFleet(t, 5)
	const ttl = 3 * time.Second
	// A machine that is busy may run this test's goroutines late, so the margin is large.
	cfg := redlock.Config{NodeTimeout: time.Second, Drift: clock.Drift{Floor: time.Second}}
	links := f.links()
	cfg.Owner = "first"
	first := election.New(f.redlockOf(f.through(links), cfg), key, ttl)
	cfg.Owner = "second"
	second := election.New(f.redlock(cfg), key, ttl)

	watching, stop := context.WithCancel(f.ctx)
	seen := make(chan string, 100) // owners, as they are observed
	go func() {
		defer close(seen)
		for leader, err := range second.Observe(watching) {
			if err == nil {
				seen <- leader.Owner
			}
		}
	}()
	defer func() {
		stop()
		for range seen {
		}
	}()

	lost, again := make(chan time.Time, 1), make(chan struct{})
	began, resign := make(chan time.Time, 1), make(chan struct{})
	var g errgroup.Group
	runs := 0
	g.Go(func() error {
		return first.Lead(f.ctx, func(ctx context.Context) error {
			if runs++; runs > 1 {
				close(again)
				return nil
			}
			for _, l := range links {
				l.Stall()
			}
			<-ctx.Done()
			lost <- time.Now()
			assert.Equal(f, redlock.ErrExpired, context.Cause(ctx))
			assert.ErrorIs(f, first.IsLeader(ctx), election.ErrNotLeader)
			return context.Cause(ctx)
		})
	})
	f.eventually("the first leads", func() bool { return first.IsLeader(f.ctx) == nil })
	g.Go(func() error {
		return second.Lead(f.ctx, func(ctx context.Context) error {
			began <- time.Now()
			<-resign
			return nil
		})
	})
	assert.True(t, (<-lost).Before(<-began), "the first knew before the second began")
	assert.Equal(t, "first", <-seen)
	assert.Equal(t, "second", <-seen)
	for _, l := range links {
		l.Resume()
	}
	close(resign)
	<-again
	require.NoError(t, g.Wait())
}
