package election_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// calls calls each method of an Election once, and returns their errors by name.
func calls(ctx context.Context, e *election.Election) map[string]error {
	all := map[string]error{"IsLeader": e.IsLeader(ctx)}
	_, all["Campaign"] = e.Campaign(ctx)
	_, all["Leader"] = e.Leader(ctx)
	all["Lead"] = e.Lead(ctx, func(context.Context) error { return nil })
	for _, err := range e.Observe(ctx) {
		all["Observe"] = err // a wrong argument ends the loop
	}
	return all
}

// Each method reports an argument of New that is wrong. None panics, and no node is asked.
func TestNewWrongArgumentsAreReportedByEachMethod(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{RestartGuard: time.Minute, KeyPrefix: "redlock:"}, func(b *virtual.Bed) {
		for _, c := range []struct {
			e    *election.Election
			says string
		}{
			{election.New(nil, name, ttl), "locks is nil"},
			{election.New(new(redlock.Redlock), name, ttl), "not made by New or Open"},
			{election.New(b.Redlock, "", ttl), "name is empty"},
			{election.New(b.Redlock, "server", ttl), "reserved"},
			{election.New(b.Redlock, name, 0), "ttl 0s"},
			{election.New(b.Redlock, name, -1), "ttl -1ns"},
			{election.New(b.Redlock, name, 9*time.Millisecond), "ttl 9ms"},
			{election.New(b.Redlock, name, math.MaxInt64), "ttl"},
			{election.New(b.Redlock, name, 2*time.Minute), "RestartGuard"},
			{new(election.Election), "not made by New"},
			{nil, "not made by New"},
		} {
			all := calls(ctx, c.e)
			assert.Len(b, all, 5)
			for method, err := range all {
				assert.ErrorContains(b, err, c.says, method)
				assert.NotErrorIs(b, err, election.ErrNotLeader, method)
			}
		}
		var none context.Context
		for method, err := range calls(none, election.New(b.Redlock, name, ttl)) {
			assert.ErrorContains(b, err, "ctx is nil", method)
		}
		assert.ErrorContains(b, election.New(b.Redlock, name, ttl).Lead(ctx, nil), "fn is nil")
		for i := range b.Masters.Len() {
			assert.Empty(b, b.Commands(i))
		}
	})
}

// After Close the arguments are as right as before, and the error is that of Close.
func TestNewOnAClosedRedlock(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
		require.NoError(b, err)
		require.NoError(b, r.Close())
		all := calls(ctx, election.New(r, name, ttl))
		assert.ErrorIs(b, all["IsLeader"], election.ErrNotLeader)
		delete(all, "IsLeader")
		assert.Len(b, all, 4)
		for method, err := range all {
			assert.ErrorIs(b, err, redlock.ErrClosed, method)
		}
	})
}

// A term is renewed until it is released, has a token, and is found in its context.
func TestCampaignTermIsKeptAlive(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{Fencing: true}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		asked, cancel := context.WithCancel(ctx)
		term, err := e.Campaign(asked)
		require.NoError(b, err)
		cancel() // it ends the campaign, not the term
		time.Sleep(10 * ttl)
		assert.NoError(b, term.Context().Err())
		assert.Equal(b, name, term.Key())
		assert.Positive(b, term.FencingToken())
		found, ok := redlock.FromContext(term.Context(), name)
		assert.True(b, ok)
		assert.Same(b, term, found)
		assert.Len(b, b.Has(name), 5)
		require.NoError(b, term.Release(ctx))
		b.Settle()
		assert.Empty(b, b.Has(name))
	})
}

// A second Campaign of a process waits behind the first term, and then has a term of its own.
func TestCampaignTwice(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		first := campaign(b, e)
		_, err := e.Campaign(soon(b, 3*ttl))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorIs(b, err, redlock.ErrHeld)
		second := make(chan *redlock.Lock)
		go func() { second <- campaign(b, e) }()
		time.Sleep(time.Second)
		require.NoError(b, first.Release(ctx))
		term := <-second
		assert.True(b, term.Valid())
		assert.NotEqual(b, first.Holder(), term.Holder())
		assert.NoError(b, e.IsLeader(ctx))
		require.NoError(b, term.Release(ctx))
	})
}

// Forty candidates in forty processes: one leads at a time, each in its turn, and tokens grow.
func TestCampaignOfForty(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		s := &stage{Bed: b}
		var all sync.WaitGroup
		for i := range 40 {
			e := candidate(b, redlock.Config{Fencing: true})
			all.Go(func() {
				term, err := e.Campaign(ctx)
				if !assert.NoError(b, err) {
					return
				}
				s.enter(fmt.Sprint(i), term.FencingToken())
				time.Sleep(50 * time.Millisecond)
				assert.True(b, term.Valid())
				assert.NoError(b, e.IsLeader(ctx))
				s.leave()
				assert.NoError(b, term.Release(ctx))
			})
		}
		all.Wait()
		assert.Len(b, s.terms, 40)
	})
}

func TestIsLeaderByTerms(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e, other := election.New(b.Redlock, name, ttl), candidate(b, redlock.Config{})
		require.ErrorIs(b, e.IsLeader(ctx), election.ErrNotLeader)
		assert.ErrorContains(b, e.IsLeader(ctx), "no term has begun")

		term := campaign(b, e)
		for i := range b.Masters.Len() {
			b.Commands(i)
		}
		assert.NoError(b, e.IsLeader(ctx))
		assert.NoError(b, e.IsLeader(term.Context()))
		assert.ErrorIs(b, other.IsLeader(ctx), election.ErrNotLeader)
		assert.ErrorIs(b, election.New(b.Redlock, name, ttl).IsLeader(ctx), election.ErrNotLeader)
		for i := range b.Masters.Len() {
			assert.Empty(b, b.Commands(i), "no node is asked")
		}

		require.NoError(b, term.Release(ctx))
		err := e.IsLeader(ctx)
		assert.ErrorIs(b, err, election.ErrNotLeader)
		assert.ErrorIs(b, err, redlock.ErrReleased)
	})
}

// From the loss on the error says how the term was lost.
func TestIsLeaderAfterALoss(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		term := campaign(b, e)
		forget(b, 0, 1, 2)
		<-term.Context().Done()
		err := e.IsLeader(ctx)
		assert.ErrorIs(b, err, election.ErrNotLeader)
		assert.ErrorIs(b, err, redlock.ErrNotHeld)
		assert.ErrorIs(b, term.Release(ctx), redlock.ErrNotHeld)
	})
}

// A leader that hears nothing of its masters, or that was paused, does not lead from Until on,
// whether the term's context has noticed or not.
func TestIsLeaderFromUntilOn(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		p := b.NewParty(redlock.Config{})
		e := election.New(p.Redlock, name, ttl)
		term := campaign(b, e)
		p.Hang()
		time.Sleep(time.Until(term.Until()) - time.Nanosecond)
		assert.NoError(b, e.IsLeader(ctx))
		for time.Now().Before(term.Until()) {
			time.Sleep(time.Nanosecond)
		}
		err := e.IsLeader(ctx)
		assert.ErrorIs(b, err, election.ErrNotLeader)
		assert.ErrorIs(b, err, redlock.ErrExpired)
		p.Revive()
		_ = term.Release(ctx) // it was lost
	})
}

// The work of a term that is over is not taken for that of the next term of the process.
func TestIsLeaderWithTheContextOfAnEarlierTerm(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		first := campaign(b, e)
		require.NoError(b, first.Release(ctx))
		second := campaign(b, e)
		assert.NoError(b, e.IsLeader(ctx))
		assert.NoError(b, e.IsLeader(second.Context()))
		err := e.IsLeader(first.Context())
		assert.ErrorIs(b, err, election.ErrNotLeader)
		assert.ErrorIs(b, err, redlock.ErrReleased)
		require.NoError(b, second.Release(ctx))
	})
}

// One Election serves many goroutines.
func TestIsLeaderBesideCampaigns(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					term, err := e.Campaign(ctx)
					if assert.NoError(b, err) {
						assert.NoError(b, e.IsLeader(ctx))
						runtime.Gosched()
						assert.NoError(b, term.Release(ctx))
					}
				}
			})
		}
		all.Wait()
		assert.ErrorIs(b, e.IsLeader(ctx), election.ErrNotLeader)
	})
}
