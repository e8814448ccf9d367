package quorum_test

import (
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
