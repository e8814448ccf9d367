package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/quorum"
)

var errBroken = errors.New("connection lost")

// breaks loses the answers of the first batches, and then calls next.
func breaks(times int, next func([]*call)) func([]*call) {
	return func(batch []*call) {
		if times--; times >= 0 {
			for _, c := range batch {
				c.Lose(errBroken)
			}
			return
		}
		next(batch)
	}
}

// A kept call whose connection broke is repeated. Until then, and within the round's time, its
// vote is open.
func TestAKeptCallThatWasLostVotesWhenItIsRepeated(t *testing.T) {
	refusing := errors.New("loading")
	for name, tc := range map[string]struct {
		carry func(g **quorum.Group[string]) func([]*call)
		want  quorum.Vote
		after time.Duration
		err   error
	}{
		"granted at the repetition":  {func(**quorum.Group[string]) func([]*call) { return breaks(1, grants) }, quorum.Granted, 50 * time.Millisecond, nil},
		"granted at the second":      {func(**quorum.Group[string]) func([]*call) { return breaks(2, grants) }, quorum.Granted, 150 * time.Millisecond, nil},
		"never answered":             {func(**quorum.Group[string]) func([]*call) { return breaks(99, nil) }, quorum.Failed, timeout, errBroken},
		"hung at the repetition":     {func(**quorum.Group[string]) func([]*call) { return breaks(1, hangs(time.Second)) }, quorum.Failed, timeout, errBroken},
		"forgotten by its transport": {func(**quorum.Group[string]) func([]*call) { return func([]*call) {} }, quorum.Failed, timeout, quorum.ErrNoAnswer},
		// The node may have done it the first time: the refusal is no evidence that it did
		// not.
		"refused at the repetition": {func(**quorum.Group[string]) func([]*call) { return breaks(1, refuses) }, quorum.Failed, 50 * time.Millisecond, errBroken},
		// These failures are certain, so they count at once.
		"no connection at the repetition": {func(g **quorum.Group[string]) func([]*call) {
			return breaks(1, func(b []*call) { unreachable(*g, 0)(b) })
		}, quorum.Failed, 50 * time.Millisecond, errRefused},
		"no connection": {func(g **quorum.Group[string]) func([]*call) {
			return func(b []*call) { unreachable(*g, 0)(b) }
		}, quorum.Failed, 0, errRefused},
		"not accepted": {func(**quorum.Group[string]) func([]*call) {
			return func(b []*call) {
				for _, c := range b {
					c.Unsent(refusing)
				}
			}
		}, quorum.Failed, 0, refusing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g *quorum.Group[string]
				g = group(&node{carry: tc.carry(&g)})
				r, took := run(g, spec{Op: "release", KeepUntil: time.Now().Add(10 * time.Second)})
				ballot := r.Ballots()[0]
				assert.Equal(t, tc.want, ballot.Vote)
				assert.Equal(t, tc.after, took)
				assert.ErrorIs(t, ballot.Err, tc.err)
				g.Close(0)
			})
		})
	}
}

// A majority does not wait for a minority whose answers were lost.
func TestALostMinorityDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: breaks(1, grants)}, &node{carry: grants}, &node{carry: grants})
		r, took := run(g, spec{Op: "release", KeepUntil: time.Now().Add(time.Minute)})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		assert.Zero(t, took)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, quorum.Granted, r.Ballots()[0].Final)
		g.Close(0)
	})
}

// A caller that leaves before the repetition knows nothing of the node.
func TestALostCallIsPendingWhenItsCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: breaks(1, grants)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		r := g.Start(spec{Op: "release", KeepUntil: time.Now().Add(time.Minute)})
		r.Wait(ctx)
		assert.Equal(t, quorum.Pending, r.Ballots()[0].Vote)
		assert.ErrorIs(t, r.Ballots()[0].Err, quorum.ErrAbandoned)
		g.Close(0)
	})
}
