package quorum_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// Heard is called once, when something is known of every node: after the decision, but before
// the lanes have finished calls that hang in a refused dial.
func TestHeardComesWhenAllHaveBeenHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grants := func(calls []*call) {
			for _, c := range calls {
				c.Grant(0)
			}
		}
		slow := func(calls []*call) {
			time.Sleep(20 * time.Millisecond)
			grants(calls)
		}
		var g *quorum.Group[string]
		refused := func(calls []*call) {
			time.Sleep(10 * time.Millisecond)
			g.Unreachable(4, errors.New("refused"))
			time.Sleep(time.Second)
			for _, c := range calls {
				c.Unsent(errors.New("refused"))
			}
		}
		var transports []quorum.Transport[string]
		for _, carry := range []func([]*call){grants, grants, grants, slow, refused} {
			transports = append(transports, &node{carry: carry})
		}
		g = quorum.NewGroup(transports, clock.System(), timeout)
		start := time.Now()
		var heard, done []time.Duration
		r := g.Start(spec{
			Op:    "op",
			Heard: func(*round) { heard = append(heard, time.Since(start)) },
			Done:  func(*round) { done = append(done, time.Since(start)) },
		})
		r.Wait(t.Context())
		assert.Zero(t, time.Since(start), "decided by three")
		g.Close(0)
		assert.Equal(t, []time.Duration{20 * time.Millisecond}, heard)
		assert.Equal(t, []time.Duration{1010 * time.Millisecond}, done)
	})
}

// Heard is called when a round that no node answers runs out of time.
func TestHeardComesWithTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := &node{carry: func(calls []*call) { time.Sleep(time.Second) }}
		g := quorum.NewGroup([]quorum.Transport[string]{hangs}, clock.System(), timeout)
		heard := 0
		r := g.Start(spec{Op: "op", Heard: func(*round) { heard++ }})
		r.Wait(t.Context())
		synctest.Wait() // the waiting goroutine wakes first
		assert.Equal(t, 1, heard)
		g.Close(0)
		assert.Equal(t, 1, heard)
	})
}
