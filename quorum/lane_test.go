package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

func TestWhatArrivesDuringABatchSharesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: late(10 * time.Millisecond)}
		g := group(n)
		first := g.Start(spec{Op: "a"})
		synctest.Wait() // the batch is under way
		var rest []*round
		for _, op := range []string{"b", "c", "d"} {
			rest = append(rest, g.Start(spec{Op: op}))
		}
		first.Wait(context.Background())
		for _, r := range rest {
			r.Wait(context.Background())
			assert.Equal(t, 20*time.Millisecond, r.Decided().Sub(first.Start()))
		}
		g.Close(0)
		assert.Equal(t, [][]string{{"a"}, {"b", "c", "d"}}, n.batches())
	})
}

func TestOneNodesLaneDoesNotDelayAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &node{carry: hangs(time.Minute)}
		g := group(hung, &node{carry: late(time.Millisecond)}, &node{carry: late(time.Millisecond)})
		for range 1000 {
			r, took := run(g, spec{})
			require.Equal(t, quorum.Won, r.Tally().Outcome())
			require.Equal(t, time.Millisecond, took)
		}
		g.Close(0)
	})
}

// Of a hung node's backlog, calls that were decided or out of time before they were sent are
// not sent. Kept calls are, in order.
func TestDroppedCallsAreNotSentAndKeptOnesAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &node{}
		hung.carry = func(b []*call) {
			time.Sleep(time.Second)
			grants(b)
			hung.become(grants)
		}
		no := func(b []*call) { time.Sleep(time.Millisecond); refuses(b) }
		g := group(hung, &node{carry: no}, &node{carry: no})
		lost := g.Start(spec{Op: "sent before the decision"})
		synctest.Wait()
		unsent, _ := run(g, spec{Op: "decided against"})
		cleanup := g.Start(spec{Op: "clean up", All: true, KeepUntil: time.Now().Add(time.Minute)})
		synctest.Wait()
		time.Sleep(2 * time.Second)
		synctest.Wait()

		assert.Equal(t, [][]string{{"sent before the decision"}, {"clean up"}}, hung.batches())
		assert.Equal(t, quorum.Granted, lost.Ballots()[0].Final, "the late grant is seen")
		assert.True(t, lost.Ballots()[0].Sent)
		assert.False(t, unsent.Ballots()[0].Sent)
		assert.Equal(t, quorum.Granted, cleanup.Ballots()[0].Final)
		g.Close(0)
	})
}

func TestAWonRoundsStragglerIsNotSentAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &node{carry: late(time.Second)}
		g := group(hung, &node{carry: grants}, &node{carry: grants})
		run(g, spec{Op: "first"})
		synctest.Wait()
		run(g, spec{Op: "queued behind"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, [][]string{{"first"}}, hung.batches())
		g.Close(0)
	})
}

func TestWithdrawnCallsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &node{carry: late(10 * time.Millisecond)}
		g := group(busy, &node{carry: grants}, &node{carry: grants})
		g.Start(spec{Op: "before"})
		synctest.Wait()
		r, _ := run(g, spec{Op: "won without it"})
		r.Withdraw()
		assert.False(t, r.Ballots()[0].Sent)
		assert.True(t, r.Ballots()[1].Sent)
		g.Close(0)
		assert.Equal(t, [][]string{{"before"}}, busy.batches())
	})
}

func TestKeptCallsAreRepeatedUntilAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		n := &node{}
		n.carry = func(b []*call) {
			if tries++; tries < 4 {
				for _, c := range b {
					c.Lose(errors.New("connection lost"))
				}
				return
			}
			grants(b)
		}
		g := group(n)
		done := make(chan time.Time, 1)
		r := g.Start(spec{Op: "x", KeepUntil: time.Now().Add(time.Minute), Done: func(*round) { done <- time.Now() }})
		r.Wait(t.Context())
		assert.Equal(t, quorum.Lost, r.Tally().Outcome())
		assert.Equal(t, timeout, r.Decided().Sub(r.Start()), "the asker waits no longer")
		assert.Equal(t, (50+100+200)*time.Millisecond, (<-done).Sub(r.Start()), "the pauses double")
		assert.Equal(t, quorum.Granted, r.Ballots()[0].Final)
		assert.Len(t, n.batches(), 4)
		g.Close(0)
	})
}

func TestKeptCallsEndWithTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: hangs(0)}
		g := group(n)
		r := g.Start(spec{Op: "x", KeepUntil: time.Now().Add(10 * time.Second)})
		time.Sleep(time.Minute)
		synctest.Wait()
		sent := len(n.batches())
		assert.Equal(t, quorum.Failed, r.Ballots()[0].Final)
		assert.LessOrEqual(t, sent, 15, "at most about one a second")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, n.batches(), sent)
		g.Close(0)
	})
}

func TestTheBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: hangs(time.Hour)}
		g := group(n)
		g.Start(spec{})
		synctest.Wait()
		keep := spec{KeepUntil: time.Now().Add(2 * time.Hour)}
		var last *round
		const far = 1<<17 + 1000
		accepted := 0
		for range far {
			last = g.Start(keep)
			if last.Ballots()[0].Err == nil {
				accepted++
			}
		}
		assert.ErrorIs(t, last.Ballots()[0].Err, quorum.ErrBacklog)
		assert.Less(t, accepted, far)
		assert.GreaterOrEqual(t, accepted, 100_000, "room to release 100,000 locks in one go")
		// There is room again once the dropped calls are gone: no caller waits for these.
		time.Sleep(time.Minute)
		n.become(grants)
		time.Sleep(2 * time.Hour)
		r, _ := run(g, spec{})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		g.Close(0)
	})
}

// A million operations behind a hung node leave only a bounded queue.
func TestDroppedCallsDoNotFillTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: hangs(time.Hour)}
		g := group(n, &node{carry: refuses}, &node{carry: refuses})
		g.Start(spec{})
		synctest.Wait()
		for range 150_000 {
			r := g.Start(spec{})
			r.Withdraw()
		}
		kept := g.Start(spec{KeepUntil: time.Now().Add(2 * time.Hour), Nodes: []bool{true, false, false}, All: true})
		assert.NoError(t, kept.Ballots()[0].Err, "there is room")
		n.become(grants)
		time.Sleep(2 * time.Hour)
		g.Close(0)
	})
}

func TestAnIdleLaneRestsAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: grants}
		g := group(n)
		for range 10 {
			run(g, spec{})
			time.Sleep(900 * time.Millisecond)
		}
		synctest.Wait()
		assert.Zero(t, n.rests(), "not while it is in use")
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, n.rests())
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, n.rests(), "once")
		run(g, spec{})
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 2, n.rests(), "and again after it was used again")
		g.Close(0)
	})
}

func TestKeptCallsGoInSlicesAndAtOnceWhenTheNodeIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{carry: hangs(time.Second)}
		g := group(n)
		g.Start(spec{})
		synctest.Wait()
		var kept []*round
		for range 5000 {
			kept = append(kept, g.Start(spec{KeepUntil: time.Now().Add(time.Hour)}))
		}
		time.Sleep(time.Minute)
		n.become(grants)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for _, r := range kept {
			require.Equal(t, quorum.Granted, r.Ballots()[0].Final)
		}
		for _, b := range n.batches() {
			require.LessOrEqual(t, len(b), 2048)
		}
		g.Close(0)
	})
}

// A clock that is an hour off does not make a lane keep or lose its connection.
func TestALaneRestsOnAnyClock(t *testing.T) {
	for _, offset := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			n := &node{carry: grants}
			g := quorum.NewGroup([]quorum.Transport[string]{n}, clock.Skewed(clock.System(), 1, offset), timeout)
			run(g, spec{})
			time.Sleep(900 * time.Millisecond)
			synctest.Wait()
			assert.Zero(t, n.rests())
			time.Sleep(2 * time.Second)
			synctest.Wait()
			assert.Equal(t, 1, n.rests())
			g.Close(0)
		})
	}
}
