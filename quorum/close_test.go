package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/quorum"
)

// Close does not wait for the pause, and sends what is queued.
func TestCloseEndsThePauseOfARefusedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		n.pause(g)
		kept := g.Start(spec{Op: "kept", KeepUntil: time.Now().Add(time.Minute)})
		began := time.Now()
		g.Close(time.Second)
		assert.Zero(t, time.Since(began))
		assert.Equal(t, quorum.Granted, kept.Ballots()[0].Final)
	})
}

func TestCloseSendsWhatIsQueuedAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: late(10 * time.Millisecond)}
		g := group(n)
		r := g.Start(spec{Op: "a"})
		synctest.Wait()
		queued := g.Start(spec{Op: "b"})
		g.Close(time.Second)
		assert.Equal(t, [][]string{{"a"}, {"b"}}, n.batches())
		assert.Equal(t, quorum.Granted, r.Ballots()[0].Final)
		assert.Equal(t, quorum.Granted, queued.Ballots()[0].Final)
		after, took := run(g, spec{})
		assert.Zero(t, took)
		assert.ErrorIs(t, after.Ballots()[0].Err, quorum.ErrClosed)
	})
}

func TestCloseDoesNotWaitTwiceForASilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: hangs(time.Second)}
		g := group(n)
		g.Start(spec{Op: "a"})
		synctest.Wait()
		var kept []*round
		for range 5000 { // several batches
			kept = append(kept, g.Start(spec{Op: "b", KeepUntil: time.Now().Add(time.Hour)}))
		}
		begin := time.Now()
		g.Close(0)
		assert.Equal(t, time.Second, time.Since(begin))
		assert.Len(t, n.batches(), 1)
		for _, r := range kept {
			require.ErrorIs(t, r.Ballots()[0].Err, quorum.ErrClosed)
		}
	})
}
