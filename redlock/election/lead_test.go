package election_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// Lead returns what fn returns, and the lock is free then.
func TestLeadReturnsWhatFnReturns(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		for _, want := range []error{nil, errWork, redlock.ErrNotHeld} { // an error of another lock is no loss
			ran := 0
			err := e.Lead(ctx, func(context.Context) error {
				ran++
				time.Sleep(3 * ttl)
				assert.NoError(b, e.IsLeader(ctx))
				assert.Len(b, b.Has(name), 5)
				return want
			})
			assert.Equal(b, want, err)
			assert.Equal(b, 1, ran)
			b.Settle()
			assert.Empty(b, b.Has(name))
			assert.ErrorIs(b, e.IsLeader(ctx), redlock.ErrReleased)
		}
	})
}

// fn's context has the values and the deadline of Lead's, and carries the term.
func TestLeadContextOfFn(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{Fencing: true}, func(b *virtual.Bed) {
		type colour struct{}
		within := context.WithValue(soon(b, time.Hour), colour{}, "green")
		var after context.Context
		require.NoError(b, election.New(b.Redlock, name, ttl).Lead(within, func(ctx context.Context) error {
			assert.Equal(b, "green", ctx.Value(colour{}))
			want, _ := within.Deadline()
			deadline, ok := ctx.Deadline()
			assert.True(b, ok)
			assert.Equal(b, want, deadline)
			term, ok := redlock.FromContext(ctx, name)
			if assert.True(b, ok) {
				assert.Positive(b, term.FencingToken())
			}
			after = ctx
			return nil
		}))
		assert.Equal(b, redlock.ErrReleased, context.Cause(after), "goroutines that fn left behind stop")
	})
}

// A fn that does not heed its context is waited for: another process leads meanwhile, and this one
// has no second fn beside the first.
func TestLeadWaitsForAFnThatIgnoresItsContext(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e, next := election.New(b.Redlock, name, ttl), candidate(b, redlock.Config{})
		var running, ran atomic.Int32
		fn := func(ctx context.Context) error {
			assert.EqualValues(b, 1, running.Add(1), "beside another one")
			defer running.Add(-1)
			settle()
			if ran.Add(1) == 1 {
				forget(b, 0, 1, 2, 3, 4)
				time.Sleep(5 * ttl)
				assert.ErrorIs(b, e.IsLeader(ctx), election.ErrNotLeader)
			}
			return nil
		}
		first := lead(ctx, e, fn)
		b.Settle()
		second := lead(ctx, e, fn) // in the same process
		term := campaign(b, next)
		assert.EqualValues(b, 1, running.Load(), "another process leads meanwhile")
		require.NoError(b, term.Release(ctx))
		time.Sleep(3 * ttl)
		assert.EqualValues(b, 1, ran.Load(), "the lock is free, and the second call waits all the same")
		require.NoError(b, first.result())
		require.NoError(b, second.result())
		assert.EqualValues(b, 3, ran.Load())
	})
}

// A call of Lead inside fn does not wait for itself. With Config.Reentrant its term is nested in the
// one around it, and ends alone.
func TestLeadInsideATerm(t *testing.T) {
	for _, reentrant := range []bool{false, true} {
		virtual.Run(t, 5, redlock.Config{Reentrant: reentrant, Fencing: true}, func(b *virtual.Bed) {
			e := election.New(b.Redlock, name, ttl)
			ran := 0
			require.NoError(b, e.Lead(ctx, func(ctx context.Context) error {
				outer, _ := redlock.FromContext(ctx, name)
				err := e.Lead(ctx, func(ctx context.Context) error {
					ran++
					inner, ok := redlock.FromContext(ctx, name)
					assert.True(b, ok)
					assert.NotSame(b, outer, inner)
					assert.Equal(b, outer.FencingToken(), inner.FencingToken())
					return errWork
				})
				if reentrant {
					assert.Equal(b, errWork, err)
				} else {
					assert.ErrorIs(b, err, redlock.ErrReentrant)
				}
				assert.True(b, outer.Valid())
				assert.NoError(b, e.IsLeader(ctx), "the term around it goes on")
				return nil
			}))
			assert.Equal(b, reentrant, ran == 1)
			assert.ErrorIs(b, e.IsLeader(ctx), redlock.ErrReleased)
		})
	}
}

// A loss ends the term inside with the one around it. The call inside ends, and the one around it
// campaigns again.
func TestLeadInsideATermThatIsLost(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{Reentrant: true}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		outer, inner := 0, 0
		require.NoError(b, e.Lead(ctx, func(ctx context.Context) error {
			if outer++; outer == 2 {
				return nil
			}
			settle()
			err := e.Lead(ctx, func(ctx context.Context) error {
				inner++
				forget(b, 0, 1, 2)
				<-ctx.Done()
				return nil
			})
			assert.ErrorIs(b, err, redlock.ErrNotHeld)
			return err
		}))
		assert.Equal(b, []int{2, 1}, []int{outer, inner})
	})
}

// A term inside another ends with it. A call of Lead that goes on for longer than the term around it
// does not take that for success.
func TestLeadInsideATermThatEndsBefore(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{Reentrant: true}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		inside, err := make(chan struct{}), make(chan error, 1)
		require.NoError(b, e.Lead(ctx, func(ctx context.Context) error {
			go func() {
				err <- e.Lead(ctx, func(ctx context.Context) error {
					close(inside)
					<-ctx.Done()
					return nil
				})
			}()
			<-inside
			return nil
		}))
		assert.ErrorIs(b, <-err, redlock.ErrReleased)
	})
}

// A term is released after fn has returned, never before: whether ctx ends, or fn panics or exits.
// Until then nobody else leads.
func TestLeadReleasesAfterFn(t *testing.T) {
	for way, end := range map[string]func(){
		"returns": func() {},
		"panics":  func() { panic(errWork) },
		"exits":   runtime.Goexit,
	} {
		t.Run(way, func(t *testing.T) {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				e, next := election.New(b.Redlock, name, ttl), candidate(b, redlock.Config{})
				asked, cancel := context.WithCancelCause(ctx)
				s := &stage{Bed: b}
				var err error
				ended := make(chan any)
				go func() {
					defer func() { ended <- recover() }()
					err = e.Lead(asked, func(ctx context.Context) error {
						s.enter("first", 0)
						defer s.leave()
						<-ctx.Done()
						assert.Equal(b, errWork, context.Cause(ctx))
						time.Sleep(3 * ttl) // it cleans up
						assert.NoError(b, e.IsLeader(context.Background()), "the lock lasts until it has done so")
						end()
						return context.Cause(ctx)
					})
				}()
				b.Settle()
				second := lead(ctx, next, func(context.Context) error { s.enter("second", 0); s.leave(); return nil })
				time.Sleep(time.Second)
				cancel(errWork)
				switch got := <-ended; way {
				case "panics":
					assert.Equal(b, errWork, got)
				case "returns":
					assert.Equal(b, errWork, err)
				}
				require.NoError(b, second.result())
				assert.Equal(b, []string{"first", "second"}, s.terms)
			})
		})
	}
}

// Two masters of five do not matter to a leader, nor to an election: neither dead, nor hung, nor
// restarted without memory.
func TestLeadWithTwoOfFiveMastersAway(t *testing.T) {
	for way, away := range map[string]func(b *virtual.Bed){
		"dead": func(b *virtual.Bed) { b.Masters.Kill(1, 3) },
		"hung": func(b *virtual.Bed) { b.Stall(1, 3) },
		"restarted": func(b *virtual.Bed) {
			require.NoError(b, errors.Join(b.Masters.Master(1).RestartEmpty(), b.Masters.Master(3).RestartEmpty()))
		},
	} {
		t.Run(way, func(t *testing.T) {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				e, next := election.New(b.Redlock, name, ttl), candidate(b, redlock.Config{})
				ran := 0
				work := func(ctx context.Context) error {
					ran++
					settle()
					if ran == 1 {
						away(b)
					}
					time.Sleep(10 * ttl)
					leader, err := e.Leader(ctx)
					assert.NoError(b, err)
					term, _ := redlock.FromContext(ctx, name)
					assert.Equal(b, term.Holder(), leader.Holder)
					return context.Cause(ctx)
				}
				require.NoError(b, e.Lead(ctx, work))
				require.NoError(b, next.Lead(ctx, work))
				assert.Equal(b, 2, ran)
				b.Resume(1, 3)
			})
		})
	}
}

// The end of ctx ends a campaign, whether another process leads or another call of this one.
func TestLeadEndsWithItsContext(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e, other := election.New(b.Redlock, name, ttl), candidate(b, redlock.Config{})
		never := func(context.Context) error { b.Error("it runs"); return nil }
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errWork)
		assert.ErrorIs(b, e.Lead(ended, never), errWork)

		stop := make(chan struct{})
		running := lead(ctx, e, func(context.Context) error { <-stop; return nil })
		b.Settle()
		for _, candidate := range []*election.Election{e, other} {
			var err error
			assert.Equal(b, 3*ttl, virtual.Took(func() { err = candidate.Lead(soon(b, 3*ttl), never) }))
			assert.ErrorIs(b, err, context.DeadlineExceeded)
		}
		close(stop)
		require.NoError(b, running.result())
	})
}

// Close takes the term at once, and ends Lead whatever fn returns.
func TestLeadEndsWithClose(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		r, err := redlock.New(b.Masters.Clients(), redlock.Config{})
		require.NoError(b, err)
		running := lead(ctx, election.New(r, name, ttl), func(ctx context.Context) error {
			<-ctx.Done()
			assert.Equal(b, redlock.ErrClosed, context.Cause(ctx))
			return nil
		})
		b.Settle()
		require.NoError(b, r.Close())
		assert.ErrorIs(b, running.result(), redlock.ErrClosed)
	})
}
