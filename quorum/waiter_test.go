package quorum_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/quorum"
)

// The timeout counts from the start of the round, however late the wait begins.
func TestTheTimeoutCountsFromTheStartOfTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := group(&node{carry: hangs(time.Second)})
		r := g.Start(spec{})
		time.Sleep(150 * time.Millisecond)
		r.Wait(t.Context())
		assert.Equal(t, timeout, r.Decided().Sub(r.Start()))
		g.Close(0)
	})
}

// A timer of a skewed clock can fire a nanosecond early by that clock. If the wait ended then,
// or the timer were set for nothing, the error would be far larger.
func TestASkewedClocksTimersEndAWaitInTime(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			rate := []float64{0.8, 1.25, 0.64, 1.6, 0.999, 1.001, 0.9, 1.1, 0.5 + r.Float64()}[seed%9]
			clk := clock.Skewed(clock.System(), rate, time.Hour)
			time.Sleep(time.Duration(r.Int64N(int64(1000 * time.Hour))))
			n := &node{carry: hangs(time.Hour)}
			g := quorum.NewGroup([]quorum.Transport[string]{n}, clk, timeout)
			for range 5 {
				round := g.Start(spec{})
				round.Wait(context.Background())
				took := round.Decided().Sub(round.Start())
				assert.GreaterOrEqual(t, took, timeout, "rate %v", rate)
				assert.LessOrEqual(t, took, timeout+time.Microsecond, "rate %v", rate)
			}
			g.Close(0)
		})
	}
}

// held is a clock whose AfterFunc timers a test can fire by hand, and can block in Reset.
type held struct {
	clock.Clock
	mu   sync.Mutex
	last *heldTimer
}

type heldTimer struct {
	clock.Timer
	fire func()

	mu   sync.Mutex
	stop chan chan struct{} // the next Reset sends a channel on it, and waits until that is closed
}

func (h *held) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &heldTimer{Timer: h.Clock.AfterFunc(d, f), fire: f}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = t
	return t
}

func (t *heldTimer) hold() (resets chan chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop = make(chan chan struct{})
	return t.stop
}

func (t *heldTimer) Reset(d time.Duration) bool {
	t.mu.Lock()
	stop := t.stop
	t.stop = nil
	t.mu.Unlock()
	if stop != nil {
		goOn := make(chan struct{})
		stop <- goOn
		<-goOn
	}
	return t.Timer.Reset(d)
}

// A waiter serves one wait after the other. A late tick for an earlier wait neither ends nor
// delays the next one, even if the timer's goroutine slept in between.
func TestATickOfAnEarlierWaitChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := &held{Clock: clock.System()}
		g := quorum.NewGroup([]quorum.Transport[string]{&node{carry: hangs(2 * time.Second)}}, clk, timeout)
		defer g.Close(0)
		older := g.Start(spec{Op: "older"}) // waited for second, ends first
		time.Sleep(150 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		newer := g.Start(spec{Op: "newer"})
		go func() {
			time.Sleep(10 * time.Millisecond)
			clk.mu.Lock()
			timer := clk.last // the waiter's timer: the lane's were made before
			clk.mu.Unlock()
			resets := timer.hold()
			go timer.fire()
			goOn := <-resets // the timer is about to be set for newer,
			cancel()         // which is over now
			time.Sleep(20 * time.Millisecond)
			close(goOn)
		}()
		newer.Wait(ctx)
		older.Wait(t.Context())
		assert.Equal(t, timeout, older.Decided().Sub(older.Start()))
	})
}

// A wait whose context ends decides the round itself. The signal of that decision must not end
// the wait of the next round, which reuses the channel.
func TestAWaitAfterACancelledOneLastsUntilItsOwnDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		g := group(n)
		defer g.Close(0)
		for range 20 { // a sync.Pool may drop the waiter between two rounds, and does so under the race detector
			n.become(hangs(50 * time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			abandoned := g.Start(spec{Op: "abandoned"})
			time.AfterFunc(10*time.Millisecond, cancel)
			abandoned.Wait(ctx)
			time.Sleep(time.Second)

			n.become(func(batch []*call) {
				time.Sleep(50 * time.Millisecond)
				grants(batch)
			})
			next := g.Start(spec{Op: "next"})
			start := time.Now()
			next.Wait(t.Context())
			assert.Equal(t, 50*time.Millisecond, time.Since(start))
			assert.Equal(t, quorum.Won, next.Tally().Outcome())
		}
	})
}

func TestSentToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []*node{{carry: grants}, {carry: grants}, {carry: grants}}
		g := group(nodes...)
		defer g.Close(0)
		all, _ := run(g, spec{Op: "all", All: true})
		assert.True(t, all.SentToAll())
		some, _ := run(g, spec{Op: "some", All: true, Nodes: []bool{true, true, false}})
		assert.False(t, some.SentToAll(), "one was not asked")

		nodes[2].become(hangs(time.Second))
		busy := g.Start(spec{Op: "busy"})
		synctest.Wait()
		assert.True(t, busy.SentToAll(), "a node that hangs was sent it all the same")
		queued, _ := run(g, spec{Op: "queued"})
		assert.Equal(t, quorum.Won, queued.Tally().Outcome())
		assert.False(t, queued.SentToAll(), "it waits behind what hangs")
		nodes[2].become(func(batch []*call) {
			for _, c := range batch {
				c.Unsent(fmt.Errorf("not reached"))
			}
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.False(t, queued.SentToAll(), "the node was not reached")
	})
}
