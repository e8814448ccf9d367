package election_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

// The leader is the holder of a majority. Everybody sees the same one, and nobody a secret.
func TestLeaderIsTheHolderOfAMajority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e, watcher := candidate(b, redlock.Config{Owner: "web-3"}), candidate(b, redlock.Config{Owner: "web-4"})
		_, err := watcher.Leader(ctx)
		require.ErrorIs(b, err, election.ErrNoLeader)

		began := time.Now()
		term := campaign(b, e)
		time.Sleep(5 * ttl)
		for _, away := range [][]int{nil, {0}, {0, 4}} {
			forget(b, away...)
			for _, who := range []*election.Election{e, watcher} {
				leader, err := who.Leader(ctx)
				require.NoError(b, err)
				assert.Equal(b, term.Holder(), leader.Holder)
				assert.Equal(b, "web-3", leader.Owner)
				assert.True(b, began.Truncate(time.Second).Equal(leader.Since), leader.Since)
				assert.NotContains(b, fmt.Sprintf("%+v", leader), term.Value())
			}
		}
		forget(b, 2)
		_, err = watcher.Leader(ctx)
		assert.ErrorIs(b, err, election.ErrNoLeader, "two of five have it")
		assert.ErrorIs(b, term.Release(ctx), redlock.ErrNotHeld)
	})
}

// Without a majority for one holder there is no leader, and with too few answers it is not known.
func TestLeaderWithoutAMajority(t *testing.T) {
	for what, c := range map[string]struct {
		arrange func(b *virtual.Bed)
		want    error
	}{
		"split": {func(b *virtual.Bed) {
			for i := range 5 {
				require.NoError(b, b.Redis(i).Set(name, fmt.Sprintf("00000000-0000-4000-8000-%012d", i/2)))
				b.Redis(i).SetTTL(name, ttl)
			}
		}, election.ErrNoLeader},
		"a minority holds, the others are down": {func(b *virtual.Bed) {
			b.Steal(name, ttl, 0, 1)
			b.Masters.Kill(2, 3, 4)
		}, redlock.ErrNoQuorum},
		"a minority holds, the others hang": {func(b *virtual.Bed) {
			b.Steal(name, ttl, 0, 1)
			b.Stall(2, 3, 4)
		}, redlock.ErrNoQuorum},
		"a minority is free, the others are down": {func(b *virtual.Bed) { b.Masters.Kill(2, 3, 4) }, redlock.ErrNoQuorum},
		"a minority holds, a minority is down":    {func(b *virtual.Bed) { b.Steal(name, ttl, 0, 1); b.Masters.Kill(2) }, redlock.ErrNoQuorum},
		"the key is a list": {func(b *virtual.Bed) {
			for i := range 3 {
				_, err := b.Redis(i).Push(name, "x")
				require.NoError(b, err)
			}
		}, redlock.ErrForeign},
	} {
		t.Run(what, func(t *testing.T) {
			virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
				c.arrange(b)
				leader, err := election.New(b.Redlock, name, ttl).Leader(ctx)
				assert.Zero(b, leader)
				for _, reason := range []error{election.ErrNoLeader, redlock.ErrNoQuorum, redlock.ErrForeign} {
					assert.Equal(b, reason == c.want, errors.Is(err, reason), "%v", err)
				}
				b.Resume(2, 3, 4)
			})
		})
	}
}

// The error of too few answers names each node that gave none.
func TestLeaderWithoutQuorumNamesTheNodes(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Stall(1, 2, 4)
		_, err := election.New(b.Redlock, name, ttl).Leader(ctx)
		var failed *redlock.QuorumError
		require.ErrorAs(b, err, &failed)
		assert.Equal(b, []any{"inspect", name, 3, 2, 5}, []any{failed.Op, failed.Key, failed.Need, failed.Granted, failed.Total})
		require.Len(b, failed.Nodes, 3)
		for i, node := range []int{1, 2, 4} {
			assert.Equal(b, node, failed.Nodes[i].Index)
			assert.Equal(b, quorum.Failed, failed.Nodes[i].Vote)
			assert.ErrorContains(b, err, b.Masters.Master(node).Addr()+": no answer")
		}
		b.Resume(1, 2, 4)
	})
}

func TestLeaderEndsWithItsContext(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		e := election.New(b.Redlock, name, ttl)
		ended, cancel := context.WithCancelCause(ctx)
		cancel(errWork)
		_, err := e.Leader(ended)
		assert.ErrorIs(b, err, errWork)
		b.Stall(0, 1, 2, 3, 4)
		_, err = e.Leader(soon(b, time.Millisecond))
		assert.ErrorIs(b, err, context.DeadlineExceeded)
		b.Resume(0, 1, 2, 3, 4)
	})
}
