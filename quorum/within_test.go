package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// A round with its own Within counts the votes that come in time, and fails the others, both
// with Wait and with a Decided callback.
func TestWithinIsHowLongARoundMayStayUndecided(t *testing.T) {
	for _, tc := range []struct {
		name   string
		within time.Duration
		want   quorum.Outcome
		after  time.Duration
	}{
		{"the group's timeout by default", 0, quorum.Lost, timeout},
		{"longer than a node takes", 4 * timeout, quorum.Won, 3 * timeout},
		{"too short", 2 * timeout, quorum.Lost, 2 * timeout},
		{"shorter than the group's", timeout / 2, quorum.Lost, timeout / 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := group(&node{carry: late(3 * timeout)}, &node{carry: late(3 * timeout)}, &node{carry: grants})
				r, took := run(g, spec{Within: tc.within})
				assert.Equal(t, tc.want, r.Tally().Outcome())
				assert.Equal(t, tc.after, took)
				time.Sleep(time.Minute)

				decided := make(chan *round, 1)
				g.Start(spec{Within: tc.within, Decided: func(r *round) { decided <- r }})
				r = <-decided
				assert.Equal(t, tc.want, r.Tally().Outcome())
				assert.Equal(t, tc.after, r.Decided().Sub(r.Start()))
				g.Close(time.Minute)
			})
		})
	}
}

// A call that waits behind a batch is sent if its round may still be undecided.
func TestWithinIsHowLongACallMayWaitToBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: late(3 * timeout)}
		g := group(n)
		g.Start(spec{Op: "busy"})
		synctest.Wait()
		patient := g.Start(spec{Op: "patient", Within: 7 * timeout})
		hasty := g.Start(spec{Op: "hasty", Within: 3 * timeout})
		plain := g.Start(spec{Op: "plain"})
		for _, r := range []*round{plain, hasty, patient} {
			r.Wait(t.Context())
		}
		assert.Equal(t, quorum.Won, patient.Tally().Outcome())
		assert.Equal(t, quorum.Lost, hasty.Tally().Outcome())
		assert.Equal(t, quorum.Lost, plain.Tally().Outcome())
		g.Close(time.Minute)
		assert.Equal(t, [][]string{{"busy"}, {"patient"}}, n.batches())
	})
}

// A node that is behind still gets calls for up to the timeout after the others have decided
// them. A node that hangs does not collect decided rounds.
func TestWithinDoesNotOutlastTheDecisionByMoreThanTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind, hung := &node{carry: late(4*timeout - 1)}, &node{carry: late(4 * timeout)}
		g := group(&node{carry: late(3 * timeout)}, &node{carry: late(3 * timeout)}, &node{carry: late(3 * timeout)}, behind, hung)
		g.Start(spec{Op: "busy", All: true, Nodes: []bool{false, false, false, true, true}})
		synctest.Wait()
		r, took := run(g, spec{Op: "decided", Within: time.Hour})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		assert.Equal(t, 3*timeout, took)
		g.Close(time.Minute)
		assert.Equal(t, [][]string{{"busy"}, {"decided"}}, behind.batches())
		assert.Equal(t, [][]string{{"busy"}}, hung.batches())
	})
}

// A waiter serves rounds of different Within one after the other.
func TestWithinOfOneWaitIsNotThatOfTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := quorum.NewGroup([]quorum.Transport[string]{&node{carry: hangs(time.Minute)}}, clock.System(), timeout)
		for _, within := range []time.Duration{5 * timeout, timeout / 4, 0, 2 * timeout} {
			_, took := run(g, spec{Within: within})
			want := within
			if within == 0 {
				want = timeout
			}
			assert.Equal(t, want, took)
		}
		g.Close(0)
	})
}
