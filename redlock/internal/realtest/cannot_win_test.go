package realtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// hasty is the default NodeTimeout. far is a one-way delay whose round trip takes longer.
const (
	hasty = 200 * time.Millisecond
	far   = 150 * time.Millisecond
)

// farAway delays the links, so that a round trip takes twice far.
func farAway(links []*redisserver.Link) {
	for _, l := range links {
		l.Delay(far)
		l.DelayReplies(far)
	}
}

// cutOff stops the links, so that clients behind them do not reach those masters.
func cutOff(links []*redisserver.Link) {
	for _, l := range links {
		l.Refuse()
		l.Break()
	}
}

// servedBeside lets three Redlocks take two hundred turns each. They go on until a sick Redlock
// that waits for the same key has tried ten times meanwhile. If they are not served, the fleet's
// context ends the test.
func (f *fleet) servedBeside(links []*redisserver.Link, cfg redlock.Config) *waiting {
	f.Helper()
	const healthy, times, tries = 3, 200, 10
	all := f.redlocks(healthy, cfg)
	clients := f.through(links)
	said := overhear("", clients)[0] // of the first master, which the sick one reaches
	cfg.NodeTimeout = hasty
	sick := f.redlockOf(clients, cfg)
	l := f.acquire(all[0], key, time.Hour)
	f.onAll(key, l, f.answering()...)
	w := f.wait(sick, key, time.Minute)
	asked := func() (n int) {
		for _, what := range []string{"set", "try", "enqueue"} {
			n += said.count(what)
		}
		return n
	}
	f.eventually("the sick one has tried", func() bool { return asked() > 0 })
	first := asked()
	var shared resource
	done := make(chan error, healthy)
	for _, r := range all {
		go func() {
			for i := 0; i < times || asked() < first+tries; i++ {
				if err := shared.use(f, r, 1); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	require.NoError(f, f.release(l))
	var errs []error
	for range healthy {
		errs = append(errs, <-done)
	}
	require.NoError(f, errors.Join(errs...), "after %d turns", shared.uses)
	f.Logf("%d turns, while the sick one asked the first master %d times", shared.uses, asked()-first)
	require.False(f, w.over(), "it cannot win")
	return w
}

// startLongFleet is startFleet for tests with many turns on a loaded machine.
func startLongFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := startFleet(t, n)
	ctx, cancel := context.WithTimeoutCause(context.Background(), 2*hang, errors.New("the test hangs"))
	t.Cleanup(cancel)
	f.ctx = ctx
	return f
}

// answering returns the masters that are alive.
func (f *fleet) answering() (which []int) {
	for i, s := range f.servers {
		if s.PID() != 0 {
			which = append(which, i)
		}
	}
	return which
}

// busy lets three Redlocks take turns until stop is called.
func (f *fleet) busy(cfg redlock.Config) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	var shared resource
	all := f.redlocks(3, cfg)
	done := make(chan error, len(all))
	for _, r := range all {
		go func() {
			for ctx.Err() == nil {
				if err := shared.use(f, r, 1); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	return func() {
		cancel()
		for range all {
			require.NoError(f, <-done)
		}
	}
}

// A client whose links are slower than its NodeTimeout is granted the key too late every time. The
// others are still served.
func TestRealAcquireBesideAClientThatIsTooFarAway(t *testing.T) {
	for _, n := range []int{1, 5} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d masters, Fair %v", n, fair), func(t *testing.T) {
				f := startLongFleet(t, n)
				links := f.links()
				farAway(links)
				f.servedBeside(links, redlock.Config{Fair: fair})
			})
		}
	}
}

// The same client gets its turn if it can win: with a NodeTimeout that is longer than a round trip,
// beside clients that are always there before it.
func TestRealAcquireOverSlowLinksHasItsTurns(t *testing.T) {
	f := startFleet(t, 5)
	links := f.links()
	farAway(links)
	stop := f.busy(redlock.Config{})
	defer stop()
	r := f.redlockOf(f.through(links), redlock.Config{})
	for range 3 {
		require.NoError(t, f.release(f.wait(r, key, time.Minute).got()))
	}
}

// A client that reaches only a minority of the masters takes that minority in vain every time. The
// others are still served, and so is that client once it reaches a majority.
func TestRealAcquireBesideAClientThatSeesAMinority(t *testing.T) {
	for _, c := range []struct{ masters, dead, sees int }{
		{5, 1, 2}, {4, 0, 2}, {3, 1, 1}, {2, 0, 1},
	} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d of %d masters, %d dead, Fair %v", c.sees, c.masters, c.dead, fair), func(t *testing.T) {
				f := startLongFleet(t, c.masters)
				for i := range c.dead {
					f.kill(c.masters - 1 - i)
				}
				links := f.links()
				cutOff(links[c.sees:])
				w := f.servedBeside(links, redlock.Config{Fair: fair})

				stop := f.busy(redlock.Config{Fair: fair})
				defer stop()
				for _, l := range links[c.sees:] {
					require.NoError(t, l.Accept())
				}
				require.NoError(t, f.release(w.got()))
			})
		}
	}
}
