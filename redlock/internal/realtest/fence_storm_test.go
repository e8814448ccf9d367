package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// ledger is the resource that a lock protects. It has the current holder and the highest token
// seen, and no mutex of its own.
type ledger struct {
	holder atomic.Int64
	last   atomic.Int64
	served atomic.Int64
}

func (r *ledger) enter(token int64) error {
	if !r.holder.CompareAndSwap(0, token) {
		return errors.New("two holders")
	}
	r.served.Add(1)
	if last := r.last.Swap(token); last >= token {
		return fmt.Errorf("token %d after %d", token, last)
	}
	return nil
}

func (r *ledger) leave() { r.holder.Store(0) }

// Clients whose clocks are an hour off contend for one key, while the masters are killed one after
// the other and come back with their memory. The order of tokens is that of the holders.
func TestRealAcquireTokensGrowInAStorm(t *testing.T) {
	f := startFleet(t, 5, redisserver.Config("appendonly yes", "appendfsync always"))
	const enough, long = 300, 2 * time.Minute
	ctx, cancel := context.WithTimeoutCause(context.Background(), long, errors.New("the storm hangs"))
	defer cancel()
	f.ctx = ctx

	var book ledger
	g, working := errgroup.WithContext(ctx) // ends with the first error
	over := make(chan struct{})
	for i, offset := range []time.Duration{0, time.Hour, -time.Hour, time.Minute} {
		r, err := redlock.New(f.clients(), redlock.Config{
			Fencing: true, NodeTimeout: patience, Clock: clock.Skewed(clock.System(), 1, offset),
		})
		require.NoError(t, err)
		defer func() { assert.NoError(t, r.Close()) }()
		g.Go(func() error {
			for n := 0; book.served.Load() < enough; n++ {
				l, err := r.Acquire(working, key, long)
				if err != nil {
					return err
				}
				if err := book.enter(l.FencingToken()); err != nil {
					return err
				}
				if n%4 == i {
					_ = l.Extend(working, long) // puts the key back on masters that lost it
				}
				book.leave()
				_ = l.Release(ctx) // a majority need not have it any more
			}
			return nil
		})
	}
	var failed error
	go func() { failed = g.Wait(); close(over) }()

	done := func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
	killed := 0
	for ; !done(); killed++ {
		f.kill(killed % 5)
		f.served(&book, 10, done)
		f.restart(killed % 5)
		f.served(&book, 10, done)
	}
	require.NoError(t, failed)
	assert.GreaterOrEqual(t, killed, 5)
	knows := 0
	for _, fence := range f.fences() {
		if fence >= book.last.Load() {
			knows++
		}
	}
	assert.GreaterOrEqual(t, knows, 3)
}

// served waits until so many more clients have held the lock, or until over reports true.
func (f *fleet) served(r *ledger, n int64, over func() bool) {
	f.Helper()
	from := r.served.Load()
	f.eventually("somebody gets in", func() bool { return r.served.Load() >= from+n || over() })
}
