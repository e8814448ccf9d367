package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// After a loss Lead runs fn again, whatever fn has returned.
func TestLeadAgainAfterALoss(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		var causes []error
		err := e.Lead(ctx, func(ctx context.Context) error {
			settle()
			assert.NoError(b, e.IsLeader(ctx))
			switch len(causes) {
			case 0, 1:
				forget(b, 1, 2, 4)
				began := time.Now()
				<-ctx.Done()
				assert.LessOrEqual(b, time.Since(began), ttl/3, "the next renewal finds it")
				assert.ErrorIs(b, e.IsLeader(ctx), election.ErrNotLeader)
				causes = append(causes, context.Cause(ctx))
				return []error{nil, errWork}[len(causes)-1]
			}
			return errWork
		})
		assert.Equal(b, errWork, err)
		require.Len(b, causes, 2)
		assert.ErrorIs(b, causes[0], redlock.ErrNotHeld)
		assert.ErrorIs(b, causes[1], redlock.ErrNotHeld)
	})
}

// A loss that only the release reveals is a loss.
func TestLeadAgainAfterALossThatTheReleaseReveals(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		ran := 0
		require.NoError(b, election.New(b.Redlock, name, ttl).Lead(ctx, func(context.Context) error {
			settle()
			if ran++; ran == 1 {
				forget(b, 0, 1, 2)
			}
			return nil
		}))
		assert.Equal(b, 2, ran)
	})
}

// A leader that is cut off knows at Until, and the next one begins after that.
func TestLeadIsOverBeforeTheNextTerm(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		s := &stage{Bed: b}
		p := b.NewParty(redlock.Config{Fencing: true})
		asked, cancel := context.WithCancel(ctx)
		var until time.Time
		e, next := election.New(p.Redlock, name, ttl), candidate(b, redlock.Config{Fencing: true})
		first := lead(asked, e, func(ctx context.Context) error {
			term, _ := redlock.FromContext(ctx, name)
			s.enter("first", term.FencingToken())
			<-ctx.Done()
			until = time.Now()
			assert.Equal(b, term.Until(), until)
			assert.Equal(b, redlock.ErrExpired, context.Cause(ctx))
			s.leave()
			return nil
		})
		b.Settle()
		second := lead(asked, next, func(ctx context.Context) error {
			term, _ := redlock.FromContext(ctx, name)
			assert.True(b, time.Now().After(until))
			s.enter("second", term.FencingToken())
			<-ctx.Done()
			s.leave()
			return nil
		})
		time.Sleep(5 * ttl)
		assert.Equal(b, "first", s.present())
		p.Hang()
		time.Sleep(2 * ttl)
		assert.Equal(b, "second", s.present())
		p.Revive()
		time.Sleep(2 * ttl)
		assert.Equal(b, "second", s.present(), "the first stands by again")
		cancel()
		assert.ErrorIs(b, first.result(), context.Canceled)
		assert.NoError(b, second.result(), "fn has returned nil")
		assert.Equal(b, []string{"first", "second"}, s.terms)
	})
}

// While no majority answers there is no leader. When the masters are back there is one again.
func TestLeadThroughAnOutage(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		ran := 0
		running := lead(ctx, e, func(ctx context.Context) error {
			if ran++; ran == 2 {
				return nil
			}
			<-ctx.Done()
			assert.Equal(b, redlock.ErrExpired, context.Cause(ctx))
			return context.Cause(ctx)
		})
		b.Settle()
		b.Masters.Kill(0, 1, 2)
		time.Sleep(time.Minute)
		assert.Equal(b, 1, ran)
		assert.ErrorIs(b, e.IsLeader(ctx), redlock.ErrExpired)
		require.NoError(b, b.Masters.Restart(0, 1, 2))
		require.NoError(b, running.result())
		assert.Equal(b, 2, ran)
	})
}

// A release that no majority confirms is no loss, if it came in time.
func TestLeadReleasedWithoutQuorum(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		ran := 0
		require.NoError(b, election.New(b.Redlock, name, ttl).Lead(ctx, func(context.Context) error {
			ran++
			settle()
			b.Stall(0, 1, 2)
			return nil
		}))
		assert.Equal(b, 1, ran)
		b.Resume(0, 1, 2)
	})
}
