package quorum_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// AfterDone calls once the last lane has finished, however early the round was decided or withdrawn,
// and at once if it has.
func TestAfterDoneComesAfterTheLastLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grants := func(calls []*call) {
			for _, c := range calls {
				c.Grant(0)
			}
		}
		slow := func(calls []*call) {
			time.Sleep(time.Second)
			grants(calls)
		}
		g := quorum.NewGroup([]quorum.Transport[string]{&node{carry: grants}, &node{carry: grants}, &node{carry: slow}}, clock.System(), timeout)
		start := time.Now()
		var calls []string
		r := g.Start(spec{Op: "op", Done: func(*round) { calls = append(calls, "done") }})
		r.Wait(t.Context())
		synctest.Wait() // until the slow node has got it
		r.Withdraw()
		assert.False(t, r.Over())
		r.AfterDone(func() { calls = append(calls, "first") })
		over := make(chan struct{})
		r.AfterDone(func() {
			calls = append(calls, "second")
			close(over)
		})
		<-over
		assert.Equal(t, time.Second, time.Since(start))
		assert.True(t, r.Over())
		r.AfterDone(func() { calls = append(calls, "late") })
		assert.Equal(t, []string{"done", "first", "second", "late"}, calls)
		g.Close(0)
	})
}
