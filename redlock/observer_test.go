package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/spy"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// notes is an Observer that writes down what it is told.
type notes struct {
	mu     sync.Mutex
	lines  []string
	votes  map[string]int // by vote and operation
	traces []redlock.Trace
	errors []error // of votes
	before func(method string)
}

// set makes every method call f first.
func (n *notes) set(f func(method string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before = f
}

// during makes these methods call f first.
func (n *notes) during(f func(), methods ...string) {
	n.set(func(method string) {
		if slices.Contains(methods, method) {
			f()
		}
	})
}

func (n *notes) call(method string) {
	n.mu.Lock()
	before := n.before
	n.mu.Unlock()
	if before != nil {
		before(method)
	}
}

type caller struct{} // the key of a context's value that names the caller

func named(name string) context.Context { return context.WithValue(ctx, caller{}, name) }

func (n *notes) note(ctx context.Context, method, format string, args ...any) {
	n.call(method)
	n.mu.Lock()
	defer n.mu.Unlock()
	line := method + ": " + fmt.Sprintf(format, args...)
	if name := ctx.Value(caller{}); name != nil {
		line += fmt.Sprintf(" (%v)", name)
	}
	n.lines = append(n.lines, line)
}

func (n *notes) AcquireBegan(ctx context.Context, op redlock.Operation) context.Context {
	n.note(ctx, "began", "%s %s for %v", op.Op, op.Key, op.TTL)
	name, _ := ctx.Value(caller{}).(string)
	return context.WithValue(ctx, caller{}, name+"'s span")
}

func (n *notes) OperationEnded(ctx context.Context, r redlock.OperationResult) {
	n.note(ctx, "ended", "%s %s %q after %v, waited %v, %d rounds, left %v, count %d",
		r.Op, r.Key, redlock.Cause(r.Err), r.Elapsed, r.Waited, r.Rounds, r.Left, r.Count)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.traces = append(n.traces, r.Traces()...)
}

func (n *notes) LockEnded(ctx context.Context, e redlock.LockEnd) {
	n.note(ctx, "lock", "%s %s after %v, lost %v", e.Key, redlock.Cause(e.Cause), e.Held, e.Lost())
}

func (n *notes) NodeVoted(_ context.Context, v redlock.NodeVote) {
	n.call("voted")
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.votes == nil {
		n.votes = map[string]int{}
	}
	n.votes[fmt.Sprintf("%v %s", v.Vote, v.Op)] += v.Count
	if v.Err != nil {
		n.errors = append(n.errors, v.Err)
	}
}

func (n *notes) QuarantineBegan(q redlock.Quarantine) {
	n.note(ctx, "quarantine", "%d %v for %v: %s", q.Node, q.Addr == q.Server, time.Until(q.Until), q.Why)
}

func (n *notes) QuarantineEnded(q redlock.Quarantine) {
	n.note(ctx, "quarantine", "%d over after %v", q.Node, time.Since(q.Until))
}

// told returns what was written down since the last call.
func (n *notes) told() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

func (n *notes) voted() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	votes := n.votes
	n.votes = nil
	return votes
}

func observed(t *testing.T, nodes int, cfg redlock.Config, f func(b *virtual.Bed, n *notes)) {
	n := &notes{}
	cfg.Observer = n
	virtual.Run(t, nodes, cfg, func(b *virtual.Bed) { f(b, n) })
}

func TestObserverHearsOfALockWithTheContextsOfItsCallers(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		b.Delay(time.Millisecond, time.Millisecond)
		l, err := b.Redlock.TryAcquire(named("ann"), key, ttl)
		require.NoError(b, err)
		b.Settle()
		assert.Equal(b, []string{
			"began: acquire orders for 10s (ann)",
			`ended: acquire orders "" after 6ms, waited 0s, 1 rounds, left 0s, count 1 (ann's span)`,
		}, n.told())
		assert.Equal(b, map[string]int{"granted acquire": 3}, n.voted())
		require.Len(b, n.traces, 1)
		trace := n.traces[0]
		assert.Equal(b, quorum.Won, trace.Outcome)
		assert.Equal(b, 6*time.Millisecond, time.Since(trace.Start))
		for _, node := range trace.Nodes {
			assert.Equal(b, quorum.Granted, node.Vote)
			assert.Equal(b, 6*time.Millisecond, node.Latency, "with the handshake")
		}

		time.Sleep(time.Second)
		require.NoError(b, l.Extend(named("bob"), ttl))
		time.Sleep(time.Second)
		require.NoError(b, l.Release(named("cid")))
		b.Settle()
		lines := n.told()
		require.Len(b, lines, 3)
		assert.Contains(b, lines[0], `ended: extend orders "" after`)
		assert.Contains(b, lines[0], "1 rounds, left 8.8", "of 9.898 s and the margin")
		assert.Contains(b, lines[0], "(bob)")
		assert.Contains(b, lines[1], `ended: release orders "" after`)
		assert.Contains(b, lines[1], "(cid)")
		assert.Contains(b, lines[2], "lock: orders released after 2.0")
		assert.Contains(b, lines[2], "lost false (cid)")
		assert.Equal(b, map[string]int{"granted extend": 3, "granted release": 3}, n.voted())
	})
}

func TestObserverHearsWhyAnAcquisitionFailed(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		b.Warm()
		n.told()
		b.Steal(key, time.Hour, 0, 1, 2)
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrHeld)
		c, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err = b.Redlock.Acquire(c, key, ttl)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		b.Masters.Kill(0, 1, 2)
		_, err = b.Redlock.TryAcquire(ctx, key, ttl)
		require.ErrorIs(b, err, redlock.ErrNoQuorum)
		b.Settle()
		lines := n.told()
		require.Len(b, lines, 6)
		assert.Contains(b, lines[1], `ended: acquire orders "held" after 0s, waited 0s, 1 rounds`)
		assert.Contains(b, lines[3], `ended: acquire orders "held" after 1m0s, waited 1m0s`)
		assert.Contains(b, lines[5], `ended: acquire orders "no_quorum" after 0s, waited 0s, 1 rounds`)

		s := b.Redlock.Stats()
		assert.EqualValues(b, 2, s.Refused)
		assert.EqualValues(b, 1, s.NoQuorum)
		assert.EqualValues(b, 1, s.WaitCount)
		assert.Equal(b, time.Minute, s.WaitDuration)
	})
}

// What fails before a node is asked, and what joins a lock, is not an acquisition.
func TestObserverHearsNothingOfWrongArgumentsAndNestedLocks(t *testing.T) {
	observed(t, 3, redlock.Config{Reentrant: true}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, ttl)
		b.Settle()
		n.told()
		nested, err := b.Redlock.TryAcquire(l.Context(), key, ttl)
		require.NoError(b, err)
		require.NoError(b, nested.Release(ctx))
		_, err = b.Redlock.TryAcquire(ctx, "", ttl)
		require.Error(b, err)
		_, err = b.Redlock.Acquire(ctx, key, time.Millisecond)
		require.Error(b, err)
		_, err = b.Redlock.Resume(ctx, "handle", ttl)
		require.Error(b, err)
		require.Error(b, l.Extend(ctx, 0))
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err = b.Redlock.Acquire(over, "other", ttl)
		require.ErrorIs(b, err, context.Canceled)
		b.Settle()
		assert.Empty(b, n.told())
		assert.Equal(b, redlock.Stats{Held: 1, Acquired: 1}, withoutNodes(b.Redlock.Stats()))
	})
}

func withoutNodes(s redlock.Stats) redlock.Stats {
	s.Nodes = nil
	return s
}

// Each lock that was acquired ends once, however it ends.
func TestObserverHearsOfEachLocksEndOnce(t *testing.T) {
	forget := func(b *virtual.Bed) {
		for i := range 3 {
			b.Redis(i).Del(key)
		}
	}
	for name, c := range map[string]struct {
		end  func(b *virtual.Bed, l *redlock.Lock)
		told string
		lost bool
	}{
		"release":              {func(b *virtual.Bed, l *redlock.Lock) { require.NoError(b, l.Release(ctx)) }, "released after 0s", false},
		"second release":       {func(b *virtual.Bed, l *redlock.Lock) { _ = l.Release(ctx); _ = l.Release(ctx) }, "released after 0s", false},
		"release after":        {func(b *virtual.Bed, l *redlock.Lock) { require.NoError(b, l.ReleaseAfter(ctx, time.Second)) }, "released after 0s", false},
		"detach":               {func(b *virtual.Bed, l *redlock.Lock) { _, _ = l.Detach() }, "detached after 0s", false},
		"close":                {func(b *virtual.Bed, l *redlock.Lock) { _ = b.Redlock.Close(); _ = l.Release(ctx) }, "closed after 0s", false},
		"expiry":               {func(b *virtual.Bed, l *redlock.Lock) { <-l.Context().Done(); _ = l.Release(ctx) }, "expired after 9.898s", true},
		"forgotten":            {func(b *virtual.Bed, l *redlock.Lock) { forget(b); _ = l.Release(ctx) }, "not_held after 0s", true},
		"forgotten, extended":  {func(b *virtual.Bed, l *redlock.Lock) { forget(b); _ = l.Extend(ctx, ttl); _ = l.Release(ctx) }, "not_held after 0s", true},
		"forgotten, renewed":   {func(b *virtual.Bed, l *redlock.Lock) { forget(b); l.KeepAlive(); <-l.Context().Done() }, "not_held after 3.333333333s", true},
		"released, no quorum":  {func(b *virtual.Bed, l *redlock.Lock) { b.Masters.Kill(0, 1, 2); _ = l.Release(ctx) }, "released after 50ms", false},
		"renewed to the end":   {func(b *virtual.Bed, l *redlock.Lock) { l.KeepAlive(); b.Stall(0, 1, 2); <-l.Context().Done() }, "expired after 9.898s", true},
		"resumed and released": {func(b *virtual.Bed, l *redlock.Lock) { resumed(b, l) }, "released after 0s", false},
	} {
		t.Run(name, func(t *testing.T) {
			observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
				l := b.Acquire(key, ttl)
				b.Settle()
				c.end(b, l)
				b.Settle()
				var ends []string
				for _, line := range n.told() {
					if end, ok := strings.CutPrefix(line, "lock: orders "); ok {
						ends = append(ends, end)
					}
				}
				assert.Contains(b, ends, fmt.Sprintf("%s, lost %v", c.told, c.lost))
				s := b.Redlock.Stats()
				assert.Zero(b, s.Held)
				assert.EqualValues(b, len(ends), s.Acquired, "one end for each lock")
				assert.Equal(b, s.Acquired, s.Released+s.LostExpired+s.LostNotHeld)
				assert.Equal(b, c.lost, s.LostExpired+s.LostNotHeld > 0)
				b.Resume(0, 1, 2)
			})
		})
	}
}

// resumed hands a lock over within one Redlock.
func resumed(b *virtual.Bed, l *redlock.Lock) {
	handle, err := l.Detach()
	require.NoError(b, err)
	l, err = b.Redlock.Resume(ctx, handle, ttl)
	require.NoError(b, err)
	require.NoError(b, l.Release(ctx))
}

func TestObserverHearsOfRenewals(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		l, err := b.Redlock.TryAcquire(named("ann"), key, ttl)
		require.NoError(b, err)
		b.Settle()
		n.told()
		l.KeepAlive()
		time.Sleep(4 * time.Second)
		b.Settle()
		assert.Equal(b, []string{`ended: renew orders "" after 0s, waited 0s, 1 rounds, left 6.564666667s, count 1 (ann)`}, n.told())
		b.Masters.Kill(0, 1)
		time.Sleep(3 * time.Second)
		b.Settle()
		lines := n.told()
		require.NotEmpty(b, lines)
		assert.Contains(b, lines[0], `ended: renew orders "no_quorum" after`)
		s := b.Redlock.Stats()
		assert.EqualValues(b, 1, s.Renewed)
		assert.EqualValues(b, len(lines), s.RenewalsFailed)
		require.NoError(b, b.Masters.Restart(0, 1))
	})
}

// A node that does not answer has failed to vote, once for each round that asked it. A node that
// answers after the decision has voted too.
func TestObserverHearsEachNodesVoteOnce(t *testing.T) {
	observed(t, 5, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		b.Warm()
		n.voted()
		before := b.Redlock.Stats().Nodes
		b.Stall(4)
		b.Masters.Kill(3)
		const cycles = 100
		for range cycles {
			b.Cycle(b.Redlock)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second) // until the client of the silent node gives up
		b.Settle()
		votes := n.voted()
		assert.Equal(b, 3*cycles, votes["granted acquire"])
		assert.Equal(b, 3*cycles, votes["granted release"])
		assert.Zero(b, votes["refused acquire"]+votes["refused release"])

		after := b.Redlock.Stats().Nodes
		for i := range 3 {
			assert.EqualValues(b, 2*cycles, after[i].Granted-before[i].Granted, "node %d", i)
			assert.Zero(b, after[i].Failed, "node %d", i)
		}
		for i := 3; i < 5; i++ {
			assert.Equal(b, before[i].Granted, after[i].Granted, "node %d", i)
			// It is not asked for a release of what it was not sent, and it is not asked while it is
			// unknown that it is silent, in the first 200 ms.
			assert.GreaterOrEqual(b, after[i].Failed, int64(cycles-2), "node %d", i)
			assert.LessOrEqual(b, after[i].Failed, int64(2*cycles), "node %d", i)
		}
		assert.EqualValues(b, after[3].Failed+after[4].Failed, votes["failed acquire"]+votes["failed release"])
		assert.Positive(b, after[4].Latency)
		b.Resume(4)
		require.NoError(b, b.Masters.Restart(3))
	})
}

func TestObserverHearsOfQuarantines(t *testing.T) {
	observed(t, 3, virtual.Guarded, func(b *virtual.Bed, n *notes) {
		time.Sleep(time.Hour)
		b.Cycle(b.Redlock)
		n.told()
		require.NoError(b, b.Masters.Master(1).RestartEmpty())
		b.Cycle(b.Redlock)
		until := b.Redlock.Stats().Nodes[1].QuarantinedUntil
		assert.Equal(b, virtual.Quarantine, time.Until(until))
		assert.Contains(b, n.told(), "quarantine: 1 true for 11.102s: restarted 0s ago")
		time.Sleep(virtual.Quarantine)
		b.Settle()
		assert.Equal(b, []string{"quarantine: 1 over after 0s"}, n.told())
		assert.Zero(b, b.Redlock.Stats().Nodes[1].QuarantinedUntil)

		require.NoError(b, b.Masters.Master(2).RestartEmpty())
		b.Cycle(b.Redlock)
		time.Sleep(time.Second)
		n.told()
		require.NoError(b, b.Redlock.Close())
		assert.Equal(b, []string{"quarantine: 2 over after -10.102s"}, n.told(), "Close ends it early")
		time.Sleep(time.Hour)
		assert.Empty(b, n.told())
	})
}

func TestObserverThatPanicsHurtsNobody(t *testing.T) {
	var log spy.Log
	cfg := virtual.Guarded
	cfg.Logger = log.Logger()
	observed(t, 3, cfg, func(b *virtual.Bed, n *notes) {
		n.set(func(method string) { panic("boom in " + method) })
		time.Sleep(time.Hour)
		l := b.Acquire(key, ttl)
		l.KeepAlive()
		time.Sleep(time.Minute)
		assert.True(b, l.Valid(), "renewed")
		require.NoError(b, l.Extend(ctx, ttl))
		require.NoError(b, l.Release(ctx))
		require.NoError(b, b.Masters.Master(1).RestartEmpty())
		b.Cycle(b.Redlock)
		b.Acquire(key, ttl)
		time.Sleep(time.Minute)
		assert.EqualValues(b, 1, b.Redlock.Stats().LostExpired)
		b.Settle()
	})
	for _, method := range []string{"began", "ended", "lock", "voted", "quarantine"} {
		assert.Positive(t, log.Says("boom in "+method), method)
	}
	assert.Positive(t, log.Says("observer panicked\" event=observer_panicked"))
}

// A failed require in an Observer is a runtime.Goexit. It ends the goroutine of the caller, and costs
// one call on the Observer's own.
func TestObserverGoesOnAfterAGoexit(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		exits := 0
		n.during(func() {
			exits++
			runtime.Goexit()
		}, "voted")
		for range 3 {
			b.Cycle(b.Redlock)
		}
		assert.Equal(b, 18, exits)
	})
}

// An Observer that holds its caller up for longer than the lock is valid costs that lock, and leaves
// no key.
func TestAcquireReturnsNoLockThatEndedDuringTheObserver(t *testing.T) {
	for name, acquire := range map[string]func(r *redlock.Redlock) (*redlock.Lock, error){
		"TryAcquire": func(r *redlock.Redlock) (*redlock.Lock, error) { return r.TryAcquire(ctx, key, ttl) },
		"Acquire":    func(r *redlock.Redlock) (*redlock.Lock, error) { return r.Acquire(ctx, key, ttl) },
	} {
		t.Run(name, func(t *testing.T) {
			observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
				n.during(func() { time.Sleep(time.Minute) }, "ended")
				l, err := acquire(b.Redlock)
				assert.Nil(b, l)
				assert.ErrorIs(b, err, redlock.ErrExpired)
				b.Settle()
				assert.Empty(b, b.Has(key))
				s := b.Redlock.Stats()
				assert.Zero(b, s.Held)
				assert.EqualValues(b, 1, s.LostExpired)
				n.set(nil)
				b.Cycle(b.Redlock) // the local queue goes on
			})
		})
	}
}

// An Observer that never returns from a call about votes holds up no lock, no caller, and Close for a
// second.
func TestObserverThatBlocksHoldsUpNoLock(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		released := make(chan struct{})
		n.during(func() { <-released }, "voted", "lock")
		l := b.Acquire(key, ttl)
		l.KeepAlive()
		other := b.Acquire("other", ttl)
		time.Sleep(time.Minute)
		assert.True(b, l.Valid(), "renewed")
		assert.ErrorIs(b, context.Cause(other.Context()), redlock.ErrExpired, "ended on time")
		assert.Equal(b, time.Second, virtual.Took(func() { require.NoError(b, b.Redlock.Close()) }))
		assert.Empty(b, b.Has(key))
		close(released)
		b.Settle()
	})
}

// An Observer that blocks a caller holds up neither Close nor the release of the caller's lock.
func TestObserverThatBlocksACallerHoldsUpNobodyElse(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, ttl)
		b.Settle()
		released, blocked := make(chan struct{}), make(chan struct{}, 3)
		n.during(func() {
			blocked <- struct{}{}
			<-released
		}, "began", "ended")
		var callers sync.WaitGroup
		callers.Go(func() { assert.NoError(b, l.Release(ctx)) })
		callers.Go(func() {
			_, err := b.Redlock.Acquire(ctx, "other", ttl)
			assert.ErrorIs(b, err, redlock.ErrClosed)
		})
		<-blocked
		<-blocked
		b.Settle()
		assert.Empty(b, b.Has(key), "released")
		assert.Zero(b, virtual.Took(func() { require.NoError(b, b.Redlock.Close()) }))
		close(released)
		callers.Wait()
	})
}

// However slow the Observer is, the counts that it gets are complete.
func TestObserverThatIsSlowMissesNoVote(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		block := make(chan struct{})
		n.during(func() { <-block }, "voted")
		const cycles = 5000
		for range cycles {
			l := b.Acquire(key, ttl)
			require.NoError(b, l.Release(ctx))
		}
		b.Settle()
		close(block)
		b.Settle()
		var votes int64
		for _, node := range b.Redlock.Stats().Nodes {
			votes += node.Granted
		}
		assert.Greater(b, votes, int64(4*cycles), "more than the Observer's queue holds")
		told := n.voted()
		assert.EqualValues(b, votes, told["granted acquire"]+told["granted release"])
	})
}

func TestObserverGetsNoValueOfALock(t *testing.T) {
	observed(t, 3, redlock.Config{Fencing: true, Owner: "ann the owner"}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, ttl)
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		require.Error(b, err)
		for _, m := range b.Masters.All() {
			m.RefuseCommands("ERR no, with args beginning with: " + l.Value())
		}
		require.Error(b, l.Extend(ctx, ttl))
		value := l.Value()
		_ = l.Release(ctx)
		b.Settle()
		var all strings.Builder
		n.mu.Lock()
		defer n.mu.Unlock()
		fmt.Fprintf(&all, "%+v %v %+v %v", n.lines, n.votes, n.traces, n.errors)
		assert.Contains(b, all.String(), "ERR no")
		assert.NotContains(b, all.String(), value)
		assert.NotContains(b, all.String(), value[:8])
		assert.NotContains(b, all.String(), "ann the owner")
	})
}

func TestNoObserverImplementsObserver(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Observer: redlock.NoObserver{}}, func(b *virtual.Bed) { b.Cycle(b.Redlock) })
}

func TestCauseNamesEachError(t *testing.T) {
	assert.Equal(t, "", redlock.Cause(nil))
	assert.Equal(t, "error", redlock.Cause(io.EOF))
	for want, err := range map[string]error{
		"held": redlock.ErrHeld, "no_quorum": redlock.ErrNoQuorum, "expired": redlock.ErrExpired,
		"not_held": redlock.ErrNotHeld, "released": redlock.ErrReleased, "detached": redlock.ErrDetached,
		"closed": redlock.ErrClosed, "reentrant": redlock.ErrReentrant, "duplicate_node": redlock.ErrDuplicateNode,
		"timeout": context.DeadlineExceeded, "canceled": context.Canceled,
	} {
		assert.Equal(t, want, redlock.Cause(fmt.Errorf("wrapped: %w", err)))
		assert.Equal(t, want, redlock.Cause(&redlock.QuorumError{Cause: err}), "the caller's context")
	}
	failed := &redlock.QuorumError{Reason: redlock.ErrNoQuorum, Cause: context.Canceled,
		Nodes: []redlock.NodeError{{Vote: quorum.Failed, Err: redlock.ErrHeld}}}
	assert.Equal(t, "no_quorum", redlock.Cause(failed), "the reason before the cause and the nodes")
	assert.Equal(t, "canceled", redlock.Cause(&redlock.QuorumError{Cause: errors.New("caller's own")}))
	assert.Equal(t, "error", redlock.Cause(redis.Nil))
}

// A nested acquisition that extends the outer lock is an operation that Close waits for, so its
// extension is not reported.
func TestObserverOfANestedLockDoesNotHoldUpClose(t *testing.T) {
	observed(t, 3, redlock.Config{Reentrant: true}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, ttl)
		b.Settle()
		n.told()
		release := make(chan struct{})
		n.during(func() { <-release }, "ended")
		done := make(chan struct{})
		go func() { _, _ = b.Redlock.TryAcquire(l.Context(), key, 3*ttl); close(done) }()
		b.Settle()
		closed := make(chan struct{})
		go func() { _ = b.Redlock.Close(); close(closed) }()
		time.Sleep(time.Hour)
		select {
		case <-closed:
		default:
			t.Error("Close waits for the Observer of a nested acquisition")
		}
		close(release)
		<-done
		<-closed
	})
}

func TestAcquireFailsIfTheObserverClosesTheRedlock(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		n.during(func() {
			_ = b.Redlock.Close()
		}, "ended")
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(b, err, redlock.ErrClosed)
		assert.NotErrorIs(b, err, redlock.ErrExpired)
	})
}

func TestObserverThatEndsAGoroutineMissesNoEnd(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, ttl)
		b.Settle()
		n.told()
		n.during(runtime.Goexit, "ended")
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Release(ctx) })
		wg.Wait()
		b.Settle()
		s := b.Redlock.Stats()
		assert.Equal(b, s.Acquired, s.Held+s.Released+s.LostExpired+s.LostNotHeld, "%+v", withoutNodes(s))
		assert.Len(b, n.told(), 1, "lock ended told")
		n.set(nil)
	})
}

func TestObserverIsNotPartOfTheTimeThatALockWasHeld(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, ttl)
		b.Settle()
		n.told()
		n.during(func() {
			s := b.Redlock.Stats()
			assert.Equal(b, s.Acquired, s.Held+s.Released+s.LostExpired+s.LostNotHeld, "%+v", withoutNodes(s))
			time.Sleep(time.Minute)
		}, "ended")
		require.NoError(b, l.Release(ctx))
		b.Settle()
		lines := n.told()
		assert.Contains(b, lines[1], "released after 0s", "%v", lines)
		n.set(nil)
	})
}

func TestResumeThatTheObserverMadeLateLeavesTheHandleGood(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		l := b.Acquire(key, time.Hour)
		h, err := l.Detach()
		require.NoError(b, err)
		n.during(func() { time.Sleep(time.Minute) }, "ended")
		_, err = b.Redlock.Resume(ctx, h, ttl)
		require.ErrorIs(b, err, redlock.ErrExpired)
		n.set(nil)
		b.Settle()
		assert.Len(b, b.Has(key), 3, "keys live for an hour")
		_, err = b.Redlock.Resume(ctx, h, ttl)
		assert.NoError(b, err, "After the last three the handle can be used again")
	})
}

// The value that Healthy sends does not occur in messages of servers, where it would be cut out.
func TestHealthyQuotesTheServer(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for _, m := range b.Masters.All() {
			m.RefuseCommands("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk (stop-writes-on-bgsave-error option).")
		}
		err := b.Redlock.Healthy(ctx)
		assert.ErrorContains(b, err, "stop-writes-on-bgsave-error")
	})
}

func TestHealthyAsksEachNodeThatMayAnswer(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Masters.Kill(0, 1, 2)
		for range 15 {
			_ = b.Redlock.Healthy(ctx)
		}
		b.Masters.Master(3).RefuseCommands("OOM no")
		_ = b.Redlock.Healthy(ctx)
		err := b.Redlock.Healthy(ctx)
		assert.ErrorContains(b, err, "OOM")
		assert.NotContains(b, err.Error(), "was not asked")
		require.NoError(b, b.Masters.Restart(0, 1, 2))
	})
}

func TestObserverGetsAContextForEachRelease(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		var no context.Context
		l := b.Acquire(key, ttl)
		b.Settle()
		n.told()
		require.NoError(b, l.Release(no))
		b.Settle()
		assert.Len(b, n.told(), 2, "told")
	})
}

type large [1 << 20]byte

// A pending delivery does not keep the caller's context alive.
func TestReleaseKeepsNoContextWithoutAnObserver(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		for range 3 {
			l := b.Acquire("k", time.Hour)
			b.Settle()
			require.NoError(b, l.Release(ctx))
		}
		w := func() weak.Pointer[large] {
			x := &large{}
			c := context.WithValue(context.Background(), caller{}, x)
			l, err := b.Redlock.TryAcquire(ctx, key, time.Hour)
			require.NoError(b, err)
			b.Settle()
			b.Masters.Kill(2)
			require.NoError(b, l.Release(c))
			return weak.Make(x)
		}()
		b.Settle()
		time.Sleep(time.Minute)
		for range 5 { // lanes use their memory again
			l := b.Acquire("k", time.Second)
			b.Settle()
			require.NoError(b, l.Release(ctx))
		}
		runtime.GC()
		runtime.GC()
		assert.True(b, w.Value() == nil, "the context of a Release that has returned")
		require.NoError(b, b.Masters.Restart(2))
	})
}

// A renewal that a Release has overtaken has not failed: it raises no alert.
func TestObserverHearsNothingOfARenewalThatCameTooLate(t *testing.T) {
	observed(t, 3, redlock.Config{}, func(b *virtual.Bed, n *notes) {
		b.Warm()
		l := b.Acquire(key, ttl)
		l.KeepAlive()
		b.Delay(5*time.Millisecond, 5*time.Millisecond)
		time.Sleep(ttl/3 + time.Millisecond)
		n.voted()
		require.NoError(b, l.Release(ctx))
		time.Sleep(time.Second)
		b.Settle()
		assert.Equal(b, map[string]int{"granted extend": 3, "granted release": 3}, n.voted(), "it was under way")
		assert.NotContains(b, strings.Join(n.told(), "\n"), "renew")
		s := b.Redlock.Stats()
		assert.Zero(b, s.Renewed+s.RenewalsFailed)
	})
}
