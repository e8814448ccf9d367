package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

var errImpatient = errors.New("the boss is impatient")

// impatient is a context that ends after d, with a cause.
func impatient(b *virtual.Bed, d time.Duration) context.Context {
	c, cancel := context.WithTimeoutCause(ctx, d, errImpatient)
	b.Cleanup(cancel)
	return c
}

// assertCancelled asserts that err matches the cause of the caller's context and no reason, because
// no complete attempt found one.
func assertCancelled(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, errImpatient)
	for _, reason := range []error{redlock.ErrHeld, redlock.ErrNoQuorum, redlock.ErrNotHeld, redlock.ErrExpired} {
		assert.NotErrorIs(t, err, reason)
	}
}

// The masters are healthy and the key is free. If the caller leaves before they have answered, that
// is no failure of theirs.
func TestAcquireCancelledOnHealthyMastersIsNoLossOfQuorum(t *testing.T) {
	for name, cfg := range map[string]redlock.Config{"plain": {}, "fair": {Fair: true}, "fencing": {Fencing: true}} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 5, cfg, func(b *virtual.Bed) {
				b.Warm()
				b.Delay(10*time.Millisecond, 10*time.Millisecond)
				_, err := b.Redlock.TryAcquire(impatient(b, 5*time.Millisecond), key, ttl)
				assertCancelled(t, err)
				assert.Equal(t, `redlock: acquire "orders": the boss is impatient: 0 of 5 nodes granted, 3 needed`, fmt.Sprint(err)[:80])

				_, err = b.Redlock.Acquire(impatient(b, 5*time.Millisecond), key, ttl)
				assertCancelled(t, err)
				var failed *redlock.QuorumError
				require.ErrorAs(b, err, &failed)
				assert.NoError(t, failed.Reason)
				assert.Len(t, failed.Nodes, 5)
				time.Sleep(time.Second)
				assert.Empty(t, b.Has(key))
			})
		})
	}
}

// The votes that have arrived decide, so a result that was certain without the cancellation is
// reported.
func TestAcquireCancelledAfterTheDecisionHasItsReason(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		c, cancel := context.WithCancelCause(ctx)
		cancel(nil)
		_, err := b.Redlock.TryAcquire(c, key, ttl)
		assert.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, redlock.ErrNoQuorum, "nobody was asked")

		// The context ends in the clean-up after the decision.
		b.Steal(key, ttl, 0, 1, 2)
		b.Delay(0, 10*time.Millisecond)
		_, err = b.Redlock.TryAcquire(impatient(b, 15*time.Millisecond), key, ttl)
		assert.ErrorIs(t, err, errImpatient)
		assert.ErrorIs(t, err, redlock.ErrHeld)
	})
}

// The first attempt finds the key held after 20 ms. Whenever the context ends after that, in
// a later attempt too, the key was held.
func TestAcquireCancelledInALaterAttemptHasTheReasonOfTheLastComplete(t *testing.T) {
	cutShort := 0
	for ends := 21 * time.Millisecond; ends < 120*time.Millisecond; ends += time.Millisecond {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			b.Delay(10*time.Millisecond, 10*time.Millisecond)
			b.Steal(key, 60*time.Millisecond, 0, 1, 2)
			l, err := b.Redlock.Acquire(impatient(b, ends), key, ttl)
			if err == nil {
				require.NoError(b, l.Release(ctx))
				return
			}
			cutShort++
			assert.ErrorIs(b, err, errImpatient)
			assert.ErrorIs(b, err, redlock.ErrHeld, "the context ends after %v", ends)
			assert.NotErrorIs(b, err, redlock.ErrNoQuorum)
			var failed *redlock.QuorumError
			require.ErrorAs(b, err, &failed)
			refused := slices.DeleteFunc(slices.Clone(failed.Nodes), func(n redlock.NodeError) bool { return n.Vote != quorum.Refused })
			assert.GreaterOrEqual(b, len(refused), 2, "the context ends after %v: its nodes are those of the complete attempt too", ends)
		})
	}
	assert.NotZero(t, cutShort)
}

// The sibling that is first in line has no answer yet, so nobody knows why it waits.
func TestAcquireCancelledInTheLocalQueueHasNoReason(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(50*time.Millisecond, 50*time.Millisecond)
		first := make(chan error, 1)
		go func() {
			l, err := b.Redlock.Acquire(ctx, key, ttl)
			if err == nil {
				defer func() { _ = l.Release(ctx) }()
				time.Sleep(time.Second)
			}
			first <- err
		}()
		b.Settle()
		_, err := b.Redlock.Acquire(impatient(b, 20*time.Millisecond), key, ttl)
		assertCancelled(t, err)
		assert.Equal(t, `redlock: acquire "orders": the boss is impatient`, fmt.Sprint(err))
		time.Sleep(100 * time.Millisecond)
		_, err = b.Redlock.Acquire(impatient(b, 20*time.Millisecond), key, ttl)
		assert.ErrorIs(t, err, errImpatient)
		assert.ErrorIs(t, err, redlock.ErrHeld, "by the sibling")
		require.NoError(t, <-first)
	})
}

func TestExtendCancelledOnHealthyMastersIsNoLossOfQuorum(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		until := l.Until()
		err := l.Extend(impatient(b, 5*time.Millisecond), time.Minute)
		assertCancelled(t, err)
		assert.Equal(t, until, l.Until())
		assert.NoError(t, l.Context().Err())
		require.NoError(t, l.Release(ctx))
	})
}

func TestForceReleaseCancelledOnHealthyMastersIsNoLossOfQuorum(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Acquire(key, ttl)
		b.Settle()
		seen, err := b.Redlock.Inspect(ctx, key)
		require.NoError(t, err)
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		_, err = b.Redlock.ForceRelease(impatient(b, 5*time.Millisecond), seen)
		assertCancelled(t, err)
		time.Sleep(time.Second)
		assert.Empty(t, b.Has(key))
	})
}

// With too many masters dead, the votes that have arrived prove it, even if the caller leaves.
func TestForceReleaseCancelledWithoutAMajorityIsALossOfQuorum(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Acquire(key, ttl)
		b.Settle()
		seen, err := b.Redlock.Inspect(ctx, key)
		require.NoError(t, err)
		b.Masters.Kill(0, 1, 2)
		_, _ = b.Redlock.TryAcquire(ctx, "other", ttl) // finds the connections broken
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		_, err = b.Redlock.ForceRelease(impatient(b, 5*time.Millisecond), seen)
		assert.ErrorIs(t, err, errImpatient)
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
	})
}

// Votes do not decide a round that its caller left, and Trace reports that.
func TestTraceOfACancelledRoundIsOpen(t *testing.T) {
	traces := make(chan redlock.Trace, 100)
	cfg := redlock.Config{Trace: func(tr redlock.Trace) { traces <- tr }}
	virtual.Run(t, 3, cfg, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(10*time.Millisecond, 10*time.Millisecond)
		_, err := b.Redlock.TryAcquire(impatient(b, 5*time.Millisecond), key, ttl)
		assertCancelled(t, err)
		time.Sleep(time.Second)
		for range len(traces) {
			tr := <-traces
			if tr.Op == "acquire" && tr.Key == key {
				assert.Equal(t, quorum.Open, tr.Outcome)
				return
			}
		}
		t.Error("no trace")
	})
}

// A second proposal has the time that the first has left of NodeTimeout. No caller has left when
// that time is over.
func TestAcquireWhoseSecondProposalRanOutOfTimeSaysSo(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true}, func(b *virtual.Bed) {
		b.Warm()
		ahead := time.Now().Add(time.Hour).UnixMicro()
		for i := range 3 {
			require.NoError(t, b.Masters.Master(i).Miniredis().Set(fenceKey, strconv.FormatInt(ahead, 10)))
		}
		b.Delay(60*time.Millisecond, 60*time.Millisecond)
		start := time.Now()
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		assert.GreaterOrEqual(t, time.Since(start), virtual.NodeTimeout)
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.Contains(t, fmt.Sprint(err), "no answer within 80ms")
		assert.NotContains(t, fmt.Sprint(err), "the caller left")
	})
}

// nodeVotes lists the votes in a *QuorumError by node. Nodes that it leaves out have granted.
func nodeVotes(b *virtual.Bed, err error) []quorum.Vote {
	b.Helper()
	var failed *redlock.QuorumError
	require.ErrorAs(b, err, &failed)
	all := make([]quorum.Vote, failed.Total)
	for i := range all {
		all[i] = quorum.Granted
	}
	for _, n := range failed.Nodes {
		assert.Equal(b, b.Addrs(n.Index)[0], n.Addr)
		all[n.Index] = n.Vote
		for _, refusal := range []error{redlock.ErrHeld, redlock.ErrNotHeld} {
			acquisition := failed.Op == "acquire"
			want := n.Vote == quorum.Refused && acquisition == (refusal == redlock.ErrHeld)
			assert.Equal(b, want, errors.Is(n, refusal), "%s: %v", failed.Op, n)
		}
	}
	return all
}

func TestAcquireErrorTellsRefusedNodesFromFailedOnes(t *testing.T) {
	for name, cfg := range map[string]redlock.Config{"plain": {}, "fair": {Fair: true}, "fencing": {Fencing: true}} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, 5, cfg, func(b *virtual.Bed) {
				b.Warm()
				b.Steal(key, time.Hour, 0, 1)
				b.Masters.Kill(4)
				for i := range 4 { // all others have voted before the decision
					b.Masters.Master(i).Delay(0, time.Duration(3-i)*time.Millisecond)
				}
				_, err := b.Redlock.TryAcquire(ctx, key, ttl)
				assert.ErrorIs(b, err, redlock.ErrHeld)
				assert.Equal(b, []quorum.Vote{quorum.Refused, quorum.Refused, quorum.Granted, quorum.Granted, quorum.Failed}, nodeVotes(b, err))
				assert.ErrorIs(b, err, io.EOF, "the failed node's cause")
			})
		})
	}
}

// A node that refused reports that another client has its key, but the attempt failed because too
// many nodes failed. The error must not match ErrHeld, which a program takes for "busy".
func TestAcquireWithoutAQuorumDoesNotMatchARefusal(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, time.Hour, 0, 1)
		b.Stall(2, 3, 4)
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, []quorum.Vote{quorum.Refused, quorum.Refused, quorum.Failed, quorum.Failed, quorum.Failed}, nodeVotes(b, err))
		var timeout interface{ Timeout() bool }
		assert.ErrorAs(b, err, &timeout, "the failed nodes' causes")
	})
}

func TestExtendAndReleaseErrorsTellRefusedNodesFromFailedOnes(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		l := b.Acquire(key, ttl)
		b.Settle()
		b.Steal(key, ttl, 0)
		b.Stall(2, 3, 4)
		err := l.Extend(ctx, ttl)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrNotHeld)
		assert.Equal(b, []quorum.Vote{quorum.Refused, quorum.Granted, quorum.Failed, quorum.Failed, quorum.Failed}, nodeVotes(b, err))
		err = l.Release(ctx)
		assert.ErrorIs(b, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(b, err, redlock.ErrNotHeld)
		assert.Equal(b, []quorum.Vote{quorum.Refused, quorum.Granted, quorum.Failed, quorum.Failed, quorum.Failed}, nodeVotes(b, err))
	})
}

// The error leaves out a node's answer after the decision.
func TestAcquireErrorDescribesTheDecision(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Steal(key, time.Hour, 0, 1, 2, 3)
		b.Delay(time.Millisecond, time.Millisecond)
		b.Masters.Master(3).Delay(time.Millisecond, 2*time.Millisecond)
		b.Masters.Master(4).Delay(time.Millisecond, 4*time.Millisecond)
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrHeld)
		assert.Equal(b, []quorum.Vote{quorum.Refused, quorum.Refused, quorum.Refused, quorum.Pending, quorum.Pending}, nodeVotes(b, err))
		assert.Contains(b, fmt.Sprint(err), "10.0.0.4:6379: had not answered when it was decided")
	})
}
