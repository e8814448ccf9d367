package quorum_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
)

const lastRedial = 500 * time.Millisecond

// refusing returns a group of three nodes, of which node 0 refuses connections.
func refusing() (g *quorum.Group[string], nodes []*node) {
	nodes = []*node{{}, {carry: grants}, {carry: grants}}
	g = group(nodes...)
	nodes[0].become(unreachable(g, 0))
	return g, nodes
}

// ask runs a round every millisecond for d, and checks that each finds a majority.
func ask(t *testing.T, g *quorum.Group[string], d time.Duration) {
	t.Helper()
	for range d / time.Millisecond {
		r, took := run(g, spec{Op: "ask"})
		require.Equal(t, quorum.Won, r.Tally().Outcome())
		require.Zero(t, took)
		time.Sleep(time.Millisecond)
	}
}

// votes makes n grant, and returns how long it takes until n is asked again.
func votes(t *testing.T, g *quorum.Group[string], n *node) time.Duration {
	t.Helper()
	n.become(grants)
	before, began := len(n.batches()), time.Now()
	for len(n.batches()) == before {
		g.Start(spec{Op: "ask"})
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Less(t, time.Since(began), time.Minute)
	}
	return time.Since(began)
}

// A majority does without a node that refuses connections, which is dialled twice a second.
func TestARefusedMinorityIsDialledEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, nodes := refusing()
		ask(t, g, 2*time.Second)
		before := len(nodes[0].batches())
		assert.LessOrEqual(t, before, 10+6+3, "ten in a row, then after pauses that double")
		ask(t, g, 10*time.Second)
		assert.InDelta(t, 20, len(nodes[0].batches())-before, 1)
		assert.LessOrEqual(t, votes(t, g, nodes[0]), lastRedial+time.Millisecond)
		synctest.Wait()
		ask(t, g, 100*time.Millisecond)
		assert.Greater(t, len(nodes[0].batches()), before+100, "a vote ends the pauses")
		g.Close(0)
	})
}

// As soon as too few nodes answer a round, the node is dialled every 10 ms again.
func TestARefusedNodeWhoseVoteIsNeededIsDialledSoon(t *testing.T) {
	for name, carry := range map[string]func([]*call){
		"another fails": fails,
		"another hangs": hangs(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, nodes := refusing()
				ask(t, g, 2250*time.Millisecond)
				nodes[1].become(carry)
				r, _ := run(g, spec{Op: "lost"})
				require.Equal(t, quorum.Lost, r.Tally().Outcome())
				assert.LessOrEqual(t, votes(t, g, nodes[0]), 11*time.Millisecond)
				synctest.Wait()
				g.Close(0)
			})
		})
	}
}

// A key that the other nodes refuse does not shorten the pause: those nodes answer.
func TestARefusedNodeIsNotHurriedByContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, nodes := refusing()
		ask(t, g, 2*time.Second)
		nodes[1].become(refuses)
		nodes[2].become(refuses)
		before := len(nodes[0].batches())
		for range 1000 {
			run(g, spec{Op: "held"})
			time.Sleep(time.Millisecond)
		}
		assert.LessOrEqual(t, len(nodes[0].batches())-before, 3)
		g.Close(0)
	})
}

// A dial that works ends a long pause at once, even if it is not the lane's own.
func TestReachableEndsALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, nodes := refusing()
		ask(t, g, 2250*time.Millisecond)
		g.Reachable(0)
		synctest.Wait()
		assert.LessOrEqual(t, votes(t, g, nodes[0]), time.Millisecond)
		g.Close(0)
	})
}

func TestUnreachableFailsAtOnceWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		n := &node{carry: hangs(time.Second)}
		g := group(n)
		dialling := g.Start(spec{Op: "dialling"})
		synctest.Wait()
		queued := g.Start(spec{Op: "queued"})
		kept := g.Start(spec{Op: "kept", KeepUntil: time.Now().Add(time.Minute)})
		g.Unreachable(0, refused)
		later := g.Start(spec{Op: "later"})
		for _, r := range []*round{dialling, queued, kept, later} {
			r.Wait(t.Context())
			assert.Zero(t, r.Decided().Sub(r.Start()), *r.Op())
			assert.ErrorIs(t, r.Ballots()[0].Err, refused, *r.Op())
		}
		g.Reachable(0)
		r, _ := run(g, spec{Op: "again"})
		assert.Equal(t, quorum.Lost, r.Tally().Outcome(), "still behind the batch that hangs")
		time.Sleep(4 * time.Second)
		synctest.Wait()
		assert.Equal(t, [][]string{{"dialling"}, {"kept"}}, n.batches()[:2])
		n.become(grants)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		r, _ = run(g, spec{Op: "up"})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())

		// Without a batch under way, nothing would clear the error.
		g.Unreachable(0, refused)
		r, _ = run(g, spec{Op: "still up"})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		g.Close(0)
	})
}

// A node that refuses connections is asked at most a hundred times a second, however many
// callers need it, and is used again a hundredth after it is up.
func TestARefusedNodeIsNotDialledWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		n.become(unreachable(g, 50*time.Microsecond))
		for i := range 20_000 {
			r, took := run(g, spec{Op: "ask"})
			require.ErrorIs(t, r.Ballots()[0].Err, errRefused)
			require.LessOrEqual(t, took, 50*time.Microsecond)
			if i >= 10_000 {
				g.Start(spec{Op: "kept", KeepUntil: time.Now().Add(time.Minute)})
			}
			time.Sleep(100 * time.Microsecond)
		}
		dials := len(n.batches())
		assert.LessOrEqual(t, dials, 230, "in two seconds")
		assert.Greater(t, dials, 180, "in two seconds")

		n.become(grants)
		time.Sleep(10*time.Millisecond + 100*time.Microsecond) // a dial may be under way
		r, _ := run(g, spec{Op: "up"})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		undelivered := 0
		for _, b := range n.batches()[dials:] {
			for _, op := range b {
				if op == "kept" {
					undelivered++
				}
			}
		}
		assert.GreaterOrEqual(t, undelivered, 10_000)
		assert.Positive(t, n.rests(), "it rests as any other")
		g.Close(0)
	})
}

// A failed dial may be for other commands of the same client. A node that votes meanwhile is
// reachable.
func TestANodeThatVotesIsNotPausedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		n.become(func(batch []*call) {
			g.Unreachable(0, errors.New("somebody else's dial"))
			grants(batch)
		})
		run(g, spec{Op: "first"})
		n.become(grants)
		synctest.Wait()
		r, _ := run(g, spec{Op: "second"})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		g.Close(0)
	})
}

func TestReachableEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		n.pause(g)
		paused, _ := run(g, spec{Op: "paused"})
		assert.Equal(t, quorum.Lost, paused.Tally().Outcome())
		g.Reachable(0)
		r, took := run(g, spec{Op: "up"})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		assert.Zero(t, took)
		g.Close(0)
	})
}

// A caller that asks less than a hundred times a second finds a node up as soon as it is.
func TestARareCallerIsNotPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		for range 100 {
			n.become(unreachable(g, 0))
			run(g, spec{Op: "refused"})
			synctest.Wait()
			n.become(grants)
			r, _ := run(g, spec{Op: "up"})
			assert.Equal(t, quorum.Won, r.Tally().Outcome())
			time.Sleep(10 * time.Millisecond)
		}
		g.Close(0)
	})
}
