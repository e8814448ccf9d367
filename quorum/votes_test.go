package quorum_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/quorum"
)

// A node's vote is counted once for each round, whatever becomes of its call.
func TestVotesCountEachNodeOnce(t *testing.T) {
	kept := func() spec { return spec{Op: "a", KeepUntil: time.Now().Add(time.Minute)} }
	once := func() spec { return spec{Op: "a"} }
	for name, tc := range map[string]struct {
		carry func(g **quorum.Group[string]) func([]*call)
		spec  func() spec
		leave bool // the caller leaves after a millisecond
		want  quorum.Votes
	}{
		"granted":         {does(grants), once, false, quorum.Votes{Granted: 1}},
		"refused":         {does(refuses), once, false, quorum.Votes{Refused: 1}},
		"failed":          {does(fails), once, false, quorum.Votes{Failed: 1}},
		"late":            {does(late(time.Second)), once, false, quorum.Votes{Failed: 1, Latency: timeout}},
		"hung":            {does(hangs(time.Hour)), once, false, quorum.Votes{Failed: 1, Latency: timeout}},
		"forgotten":       {does(func([]*call) {}), once, false, quorum.Votes{Failed: 1}},
		"late, abandoned": {does(late(time.Second)), once, true, quorum.Votes{Granted: 1, Latency: time.Second}},
		"lost, repeated":  {does(breaks(1, grants)), kept, false, quorum.Votes{Granted: 1, Latency: 50 * time.Millisecond}},
		"lost for ever":   {does(breaks(999, nil)), kept, false, quorum.Votes{Failed: 1, Latency: timeout}},
		"unreachable": {func(g **quorum.Group[string]) func([]*call) {
			return func(b []*call) { unreachable(*g, time.Millisecond)(b) }
		}, kept, false, quorum.Votes{Failed: 1, Latency: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g *quorum.Group[string]
				n := &node{}
				n.carry = tc.carry(&g)
				g = group(n)
				var told []quorum.Voted[string]
				g.OnVotes(func(votes []quorum.Voted[string]) { told = append(told, votes...) })
				ctx, leave := context.WithCancel(context.Background())
				if tc.leave {
					time.AfterFunc(time.Millisecond, leave)
				}
				g.Start(tc.spec()).Wait(ctx)
				leave()
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				assert.Equal(t, tc.want, g.Votes(0))
				if assert.Len(t, told, 1) {
					assert.Equal(t, tc.want.Latency, told[0].Latency)
					assert.Equal(t, told[0].Vote == quorum.Granted, told[0].Err == nil)
				}
				g.Close(0)
				assert.Equal(t, tc.want, g.Votes(0), "the end of the group adds none")
			})
		})
	}
}

func does(carry func([]*call)) func(**quorum.Group[string]) func([]*call) {
	return func(**quorum.Group[string]) func([]*call) { return carry }
}

// A voter that has voted as another node has failed to vote.
func TestVotesCountADuplicateAsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		voter := unique.Make("one")
		same := func(batch []*call) {
			for _, c := range batch {
				c.By(voter)
				c.Grant(0)
			}
		}
		g := group(&node{carry: same}, &node{carry: late(time.Millisecond)}, &node{carry: func(b []*call) { time.Sleep(time.Second); same(b) }})
		r, _ := run(g, spec{Op: "a", All: true, Within: time.Minute})
		synctest.Wait()
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		assert.Equal(t, quorum.Votes{Granted: 1}, g.Votes(0))
		assert.Equal(t, quorum.Votes{Failed: 1, Latency: time.Second}, g.Votes(2))
		g.Close(0)
	})
}

// A node that hangs votes in no round, also not in those that were decided while it hung. They are
// counted once it has been silent for the timeout.
func TestVotesCountTheRoundsThatAHungNodeMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: grants}, &node{carry: grants}, &node{carry: hangs(time.Minute)})
		for range 10 {
			r, _ := run(g, spec{Op: "a"})
			synctest.Wait()
			r.Withdraw()
			time.Sleep(timeout / 2)
		}
		assert.Equal(t, quorum.Votes{Granted: 10}, g.Votes(0))
		// The first is under way; it fails with its batch. The second was withdrawn in time, and the
		// third is the first one withdrawn when the timeout was over.
		assert.EqualValues(t, 8, g.Votes(2).Failed)
		g.Close(0)
	})
}

// A call that a round did not need, or that came after Close, is no vote.
func TestVotesCountNoCallThatWasNotWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		slowly := func(b []*call) { // so that the third node has got the first round's call
			time.Sleep(time.Millisecond)
			refuses(b)
		}
		g := group(&node{carry: slowly}, &node{carry: slowly}, &node{carry: func(b []*call) { <-hold; grants(b) }})
		first, _ := run(g, spec{Op: "a"})
		lost, _ := run(g, spec{Op: "b"})
		assert.Equal(t, quorum.Lost, lost.Tally().Outcome())
		close(hold)
		synctest.Wait()
		assert.Equal(t, quorum.Votes{Granted: 1, Latency: 2 * time.Millisecond}, g.Votes(2), "the first round's alone")
		assert.True(t, first.Over() && lost.Over())
		g.Close(0)
		after := g.Start(spec{Op: "c"})
		assert.ErrorIs(t, after.Ballots()[0].Err, quorum.ErrClosed)
		assert.Equal(t, quorum.Votes{Refused: 2, Latency: 2 * time.Millisecond}, g.Votes(0))
	})
}
