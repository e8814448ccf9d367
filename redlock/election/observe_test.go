package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// sight is a pair of Observe, and when it came.
type sight struct {
	leader election.Leader
	err    error
	at     time.Time
}

// observe collects what an observer sees until ctx ends.
func observe(ctx context.Context, e *election.Election) <-chan sight {
	seen := make(chan sight, 100)
	go func() {
		defer close(seen)
		for leader, err := range e.Observe(ctx) {
			seen <- sight{leader, err, time.Now()}
		}
	}()
	return seen
}

// The present leader comes first, then each change; a state that lasts is not repeated.
func TestObserveYieldsEachChange(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		until, cancel := context.WithCancel(ctx)
		first, second := candidate(b, redlock.Config{}), candidate(b, redlock.Config{})
		seen := observe(until, candidate(b, redlock.Config{}))
		next := func(d time.Duration) sight {
			b.Helper()
			time.Sleep(d)
			b.Settle()
			require.Len(b, seen, 1)
			return <-seen
		}
		nothing := func(d time.Duration) {
			b.Helper()
			time.Sleep(d)
			b.Settle()
			require.Empty(b, seen)
		}
		require.ErrorIs(b, next(0).err, election.ErrNoLeader)
		nothing(3 * ttl)

		term := campaign(b, first)
		s := next(ttl / 10)
		require.NoError(b, s.err)
		assert.Equal(b, term.Holder(), s.leader.Holder)
		nothing(3 * ttl)

		waiting := make(chan *redlock.Lock)
		go func() { waiting <- campaign(b, second) }()
		nothing(ttl)
		require.NoError(b, term.Release(ctx))
		term = <-waiting
		s = next(ttl)
		require.NoError(b, s.err)
		assert.Equal(b, term.Holder(), s.leader.Holder)

		b.Stall(0, 1, 2)
		s = next(ttl + virtual.NodeTimeout)
		require.ErrorIs(b, s.err, redlock.ErrNoQuorum)
		assert.Zero(b, s.leader)
		nothing(ttl / 3)
		b.Resume(0, 1, 2)
		s = next(ttl)
		if s.err == nil { // it was lost, or the first to see it was quick
			assert.Equal(b, term.Holder(), s.leader.Holder)
		}
		_ = term.Release(ctx) // perhaps it was lost
		cancel()
		for range seen {
		}
	})
}

// A new term is a change even if the leader calls itself as before.
func TestObserveANewTermOfTheSameOwner(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		term := campaign(b, e)
		var holders []string
		for leader, err := range e.Observe(soon(b, 9*ttl)) {
			require.NoError(b, err)
			assert.Equal(b, term.Holder(), leader.Holder)
			if holders = append(holders, leader.Holder); len(holders) == 3 {
				break
			}
			require.NoError(b, term.Release(ctx))
			term = campaign(b, e)
		}
		require.NoError(b, term.Release(ctx))
		require.Len(b, holders, 3)
		assert.NotEqual(b, holders[0], holders[1])
		assert.NotEqual(b, holders[1], holders[2])
	})
}

// An observer asks each node once a ttl while there is a leader, and more often without one.
func TestObserveLooksSeldom(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		for _, c := range []struct {
			ttl   time.Duration
			leads bool
			want  int // looks in 20 ttls
		}{
			{ttl, true, 20},
			{time.Second, true, 20},
			{20 * time.Millisecond, true, 20},
			{ttl, false, 200},
			{time.Minute, false, 1200},           // one a second
			{500 * time.Millisecond, false, 200}, // one in 50 ms
			{20 * time.Millisecond, false, 40},   // one in 10 ms
			{10 * time.Millisecond, false, 20},   // no more often than with a leader
		} {
			e := election.New(b.Redlock, name, c.ttl)
			var term *redlock.Lock
			if c.leads {
				term = campaign(b, e)
			}
			tape := b.Record()
			until, cancel := context.WithTimeout(ctx, 20*c.ttl-time.Nanosecond)
			yielded := 0
			for range e.Observe(until) {
				yielded++
			}
			cancel()
			assert.Equal(b, 1, yielded)
			assert.Equal(b, c.want, tape.Count()[""]["inspect"]/5, "%+v", c)
			if c.leads {
				require.NoError(b, term.Release(ctx))
			}
		}
	})
}

// A leader that dies is missed within a ttl of the end of its lock.
func TestObserveTheDeathOfALeader(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		p := b.NewParty(redlock.Config{})
		term := campaign(b, election.New(p.Redlock, name, ttl))
		seen := observe(soon(b, 9*ttl), election.New(b.Redlock, name, ttl))
		time.Sleep(5*ttl + ttl/2)
		require.NoError(b, (<-seen).err)
		p.Crash()
		s := <-seen
		require.ErrorIs(b, s.err, election.ErrNoLeader)
		assert.True(b, s.at.After(term.Until()))
		assert.True(b, s.at.Before(term.Until().Add(ttl)))
		p.Revive()
		_ = term.Release(ctx) // it was lost
		for range seen {
		}
	})
}

// Errors do not end a loop, except those that last: the end of the Redlock ends it.
func TestObserveEndsWithClose(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
		require.NoError(b, err)
		var all []error
		for _, err := range election.New(r, name, ttl).Observe(ctx) {
			if all = append(all, err); len(all) == 1 {
				require.NoError(b, r.Close())
			}
		}
		require.Len(b, all, 2)
		assert.ErrorIs(b, all[0], election.ErrNoLeader)
		assert.ErrorIs(b, all[1], redlock.ErrClosed)
	})
}

// The end of ctx ends a loop at once and without a pair, in a pause and while nodes are asked.
func TestObserveEndsWithItsContext(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		term := campaign(b, e)
		for _, d := range []time.Duration{ttl / 2, ttl + virtual.NodeTimeout/2} {
			var all []error
			assert.Equal(b, d, virtual.Took(func() {
				for _, err := range e.Observe(soon(b, d)) {
					all = append(all, err)
					b.Stall(0, 1, 2)
				}
			}))
			b.Resume(0, 1, 2)
			assert.Equal(b, []error{nil}, all)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range e.Observe(ended) {
			b.Error("a pair after the end", err)
		}
		if err := term.Release(ctx); !errors.Is(err, redlock.ErrNotHeld) && !errors.Is(err, redlock.ErrExpired) {
			require.NoError(b, err)
		}
	})
}
