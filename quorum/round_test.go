package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unique"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/quorum"
)

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
