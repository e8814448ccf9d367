package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

const timeout = 200 * time.Millisecond

type (
	call  = quorum.Call[string]
	round = quorum.Round[string]
	spec  = quorum.Spec[string]
)

// node is a Transport that runs a function of the test and records its batches.
type node struct {
	mu    sync.Mutex
	carry func(batch []*call)
	seen  [][]string
	rest  int
}

func (n *node) Carry(_ context.Context, batch []*call) {
	var ops []string
	for _, c := range batch {
		ops = append(ops, *c.Op())
	}
	n.mu.Lock()
	n.seen = append(n.seen, ops)
	carry := n.carry
	n.mu.Unlock()
	carry(batch)
}

func (n *node) Rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rest++
}

func (n *node) become(carry func([]*call)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.carry = carry
}

func (n *node) batches() [][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.seen)
}

func (n *node) rests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rest
}

func grants(batch []*call) {
	for _, c := range batch {
		c.Grant(0)
	}
}

func refuses(batch []*call) {
	for _, c := range batch {
		c.Refuse(7, errors.New("no"))
	}
}

func fails(batch []*call) {
	for _, c := range batch {
		c.Fail(errors.New("broken"))
	}
}

// hangs loses every answer after d.
func hangs(d time.Duration) func([]*call) {
	return func(batch []*call) {
		time.Sleep(d)
		for _, c := range batch {
			c.Lose(errors.New("timed out"))
		}
	}
}

// late grants after d.
func late(d time.Duration) func([]*call) {
	return func(batch []*call) {
		time.Sleep(d)
		grants(batch)
	}
}

var errRefused = errors.New("connection refused")

// unreachable refuses connections to node 0 of the group, after a dial of d.
func unreachable(g *quorum.Group[string], d time.Duration) func([]*call) {
	return func(batch []*call) {
		time.Sleep(d)
		g.Unreachable(0, errRefused)
		for _, c := range batch {
			c.Unsent(errRefused)
		}
	}
}

func group(nodes ...*node) *quorum.Group[string] {
	transports := make([]quorum.Transport[string], len(nodes))
	for i, n := range nodes {
		transports[i] = n
	}
	return quorum.NewGroup(transports, clock.System(), timeout)
}

// run starts a round and waits for it. It returns the round and the virtual time it took.
func run(g *quorum.Group[string], s spec) (*round, time.Duration) {
	r := g.Start(s)
	r.Wait(context.Background())
	return r, r.Decided().Sub(r.Start())
}

func TestARoundIsDecidedAsSoonAsItIsCertain(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	slow := func(d time.Duration, then func([]*call)) func([]*call) {
		return func(b []*call) { time.Sleep(d); then(b) }
	}
	for _, tc := range []struct {
		name  string
		nodes []func([]*call)
		want  quorum.Outcome
		after time.Duration
	}{
		{"five grant", []func([]*call){slow(ms(1), grants), slow(ms(2), grants), slow(ms(3), grants), slow(ms(4), grants), slow(ms(5), grants)}, quorum.Won, ms(3)},
		{"two of five hang", []func([]*call){hangs(time.Minute), hangs(time.Minute), slow(ms(3), grants), slow(ms(4), grants), slow(ms(5), grants)}, quorum.Won, ms(5)},
		{"three of five hang", []func([]*call){hangs(time.Minute), hangs(time.Minute), hangs(time.Minute), grants, grants}, quorum.Lost, timeout},
		{"three of five refuse", []func([]*call){slow(ms(1), refuses), slow(ms(2), refuses), slow(ms(3), refuses), hangs(time.Minute), hangs(time.Minute)}, quorum.Lost, ms(3)},
		{"failures count as refusals", []func([]*call){slow(ms(1), fails), slow(ms(2), refuses), slow(ms(3), fails), hangs(time.Minute), hangs(time.Minute)}, quorum.Lost, ms(3)},
		// Case 7: node-redlock never resolved with 1 of 2 or 2 of 4 nodes.
		{"one of two", []func([]*call){slow(ms(1), grants), slow(ms(2), fails)}, quorum.Lost, ms(2)},
		{"two of four", []func([]*call){slow(ms(1), grants), slow(ms(2), grants), slow(ms(3), fails), slow(ms(4), fails)}, quorum.Lost, ms(4)},
		{"three of four", []func([]*call){slow(ms(1), grants), slow(ms(2), grants), slow(ms(3), grants), hangs(time.Minute)}, quorum.Won, ms(3)},
		{"a single node", []func([]*call){slow(ms(1), grants)}, quorum.Won, ms(1)},
		{"a single node that fails", []func([]*call){slow(ms(1), fails)}, quorum.Lost, ms(1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nodes []*node
				for _, f := range tc.nodes {
					nodes = append(nodes, &node{carry: f})
				}
				g := group(nodes...)
				r, took := run(g, spec{})
				assert.Equal(t, tc.want, r.Tally().Outcome())
				assert.Equal(t, tc.after, took)
				g.Close(0)
			})
		})
	}
}

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

func TestACancelledWaitReturnsAtOnceAndCountsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: late(50 * time.Millisecond)}, &node{carry: late(50 * time.Millisecond)})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		r := g.Start(spec{})
		r.Wait(ctx)
		assert.Equal(t, 10*time.Millisecond, r.Decided().Sub(r.Start()))
		assert.Equal(t, quorum.Open, r.Tally().Outcome(), "no node has failed")
		assert.Equal(t, quorum.Pending, r.Ballots()[0].Vote)
		assert.ErrorIs(t, r.Ballots()[0].Err, quorum.ErrAbandoned)
		g.Close(0)
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
				g.Start(spec{Op: "owe", KeepUntil: time.Now().Add(time.Minute)})
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
				if op == "owe" {
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
		n.become(unreachable(g, 0))
		for range 10 {
			run(g, spec{Op: "refused"})
			synctest.Wait()
		}
		n.become(grants)
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

// Close does not wait for the pause, and sends what is queued.
func TestCloseEndsThePauseOfARefusedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		n.become(unreachable(g, 0))
		for range 10 {
			run(g, spec{Op: "ask"})
			synctest.Wait()
		}
		n.become(grants)
		kept := g.Start(spec{Op: "kept", KeepUntil: time.Now().Add(time.Minute)})
		began := time.Now()
		g.Close(time.Second)
		assert.Zero(t, time.Since(began))
		assert.Equal(t, quorum.Granted, kept.Ballots()[0].Final)
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

func TestNodesThatAreNotAskedCountAsRefusing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []*node{{carry: grants}, {carry: grants}, {carry: grants}, {carry: grants}, {carry: grants}}
		g := group(nodes...)
		r, _ := run(g, spec{Nodes: []bool{true, true, true, false, false}})
		assert.Equal(t, quorum.Won, r.Tally().Outcome())
		assert.Len(t, r.Ballots(), 3)
		r, _ = run(g, spec{Nodes: []bool{true, true, false, false, false}})
		assert.Equal(t, quorum.Lost, r.Tally().Outcome())
		all, _ := run(g, spec{Nodes: []bool{true, true, false, false, false}, All: true})
		assert.Equal(t, 2, all.Tally().Granted, "All waits for everybody")
		none, took := run(g, spec{Nodes: make([]bool, 5)})
		assert.Equal(t, quorum.Lost, none.Tally().Outcome())
		assert.Zero(t, took)
		g.Close(0)
	})
}

func TestDecidedAndDoneAreCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: late(1 * time.Millisecond)}, &node{carry: late(2 * time.Millisecond)}, &node{carry: hangs(time.Second)})
		var events []string
		start := time.Now()
		note := func(what string) func(*round) {
			return func(r *round) {
				events = append(events, fmt.Sprint(what, " ", time.Since(start)))
				if what == "done" {
					g.Start(spec{Op: "from a callback"}) // takes no lock that is held
				}
			}
		}
		g.Start(spec{Decided: note("decided"), Done: note("done")})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"decided 2ms", "done 1s"}, events)

		// Without a waiter and without answers, the round expires by itself.
		events, start = nil, time.Now()
		g.Close(0)
		g2 := group(&node{carry: hangs(time.Second)})
		g2.Start(spec{Decided: note("decided")})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"decided 200ms"}, events)
		g2.Close(0)
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

// Submit calls no callback, so its caller may hold a lock that callbacks take.
func TestSubmitCallsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: grants}, &node{carry: grants}, &node{carry: grants})
		for range 2 {
			var lock sync.Mutex // a callback that came too early would deadlock
			events := 0
			note := func(*round) {
				lock.Lock()
				defer lock.Unlock()
				events++
			}
			lock.Lock()
			r := g.Submit(spec{Decided: note, Done: note})
			synctest.Wait() // every node has answered
			assert.Zero(t, events)
			assert.Zero(t, r.Decided())
			lock.Unlock()
			r.Arm()
			assert.Equal(t, 2, events)
			assert.NotZero(t, r.Decided())
			g.Close(0) // in the second iteration the lanes fail the calls at once
		}
	})
}

func TestOwedCallsGoInSlicesAndAtOnceWhenTheNodeIsBack(t *testing.T) {
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

// Two nodes with the same voter have one vote between them. Unknown voters have one each.
func TestAVoterCountsOnceInARound(t *testing.T) {
	grantsAs := func(voter quorum.Voter) func([]*call) {
		return func(batch []*call) {
			for _, c := range batch {
				c.By(voter)
				c.Grant(0)
			}
		}
	}
	one, other := unique.Make("one"), unique.Make("other")
	for name, tc := range map[string]struct {
		voters []quorum.Voter
		want   quorum.Outcome
	}{
		"twice":     {[]quorum.Voter{one, one}, quorum.Lost},
		"different": {[]quorum.Voter{one, other}, quorum.Won},
		"unknown":   {[]quorum.Voter{{}, {}}, quorum.Won},
	} {
		synctest.Test(t, func(t *testing.T) {
			var nodes []*node
			for _, voter := range tc.voters {
				nodes = append(nodes, &node{carry: grantsAs(voter)})
			}
			g := group(append(nodes, &node{carry: fails})...)
			r, _ := run(g, spec{All: true})
			assert.Equal(t, tc.want, r.Tally().Outcome(), name)
			twice := 0
			for _, b := range r.Ballots()[:2] {
				assert.Equal(t, quorum.Granted, b.Final, "the node did it all the same")
				if errors.Is(b.Err, quorum.ErrVotedTwice) {
					twice++
				}
			}
			assert.Equal(t, tc.want == quorum.Lost, twice == 1, name)
			g.Close(0)
		})
	}
}
