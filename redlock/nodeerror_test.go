package redlock_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// nodeVotes lists the votes in a *QuorumError by node, Granted for those that it leaves out.
func nodeVotes(b *virtual.Bed, err error) []quorum.Vote {
	b.Helper()
	var failed *redlock.QuorumError
	require.ErrorAs(b, err, &failed)
	all := make([]quorum.Vote, failed.Total)
	for i := range all {
		all[i] = quorum.Granted
	}
	for _, n := range failed.Nodes {
		assert.Equal(b, addrs(b, n.Index)[0], n.Addr)
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
				for i := range 4 { // so that all others have voted at the decision
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

// A node that refused says that somebody has its key; that too many failed is what came
// of it. A program that takes ErrHeld for "busy" must not be told so.
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

// What a node answers after the decision is none of its votes.
func TestAcquireErrorIsOfTheDecision(t *testing.T) {
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
