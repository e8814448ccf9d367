package redlock_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

func TestAcquireUncontendedIsOnePlainSet(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{KeyPrefix: "lock:"}, func(b *virtual.Bed) {
		l := b.Acquire(key, ttl+400*time.Microsecond)
		b.Settle()
		for _, m := range b.Masters.All() {
			sent := m.Commands()
			assert.Equal(t, []string{"SET", "lock:" + key, l.Value(), "nx", "px", "10000"}, sent[len(sent)-1])
		}
		assert.Equal(t, key, l.Key())
		assert.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} [0-9]+ .+ pid [0-9]+$`, l.Value(), "a UUID, and the label")
	})
}

// Step 4 of docs/algorithm.md: validity counts from before the first byte is sent, on a ttl that
// was first cut to whole milliseconds.
func TestAcquireCountsValidityFromBeforeTheFirstByte(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		l := b.Acquire(key, ttl+999*time.Microsecond)
		assert.Equal(t, 50*time.Millisecond, time.Since(start), "one round trip")
		assert.Equal(t, start.Add(ttl-clock.DefaultDrift.Of(ttl)), l.Until())
	})
}

// Case 1: one hung node of three, or two of five, behind clients with default
// options, costs nothing.
func TestAcquireWithAHungMinorityCostsNothing(t *testing.T) {
	for _, tc := range []struct {
		n    int
		hung []int
	}{{3, []int{1}}, {5, []int{0, 4}}, {4, []int{2}}, {7, []int{0, 3, 6}}} {
		virtual.Run(t, tc.n, redlock.Config{}, func(b *virtual.Bed) {
			b.Warm()
			b.Delay(time.Millisecond, time.Millisecond)
			b.Stall(tc.hung...)
			for range 20 { // also after a lane has given up a connection
				var l *redlock.Lock
				assert.Equal(t, 2*time.Millisecond, virtual.Took(func() { l = b.Acquire(key, ttl) }))
				assert.Equal(t, 2*time.Millisecond, virtual.Took(func() { assert.NoError(t, l.Extend(ctx, ttl)) }))
				assert.Equal(t, 2*time.Millisecond, virtual.Took(func() { assert.NoError(t, l.Release(ctx)) }))
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

func TestAcquireWithAHungMajorityIsNoQuorumWithinTheNodeTimeout(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		l := b.Acquire("held", ttl)
		b.Stall(0, 1, 2)
		var err error
		assert.Equal(t, virtual.NodeTimeout, virtual.Took(func() { _, err = b.Redlock.TryAcquire(ctx, key, ttl) }))
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "not the caller's deadline")
		var failed *redlock.QuorumError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, "acquire", failed.Op)
		assert.Equal(t, key, failed.Key)
		assert.Equal(t, 3, failed.Need)
		assert.Equal(t, 2, failed.Granted)
		require.Len(t, failed.Nodes, 3)
		assert.Equal(t, b.Masters.Master(0).Addr(), failed.Nodes[0].Addr)
		assert.EqualError(t, failed.Nodes[0].Err, "no answer within 200ms")

		assert.Equal(t, virtual.NodeTimeout, virtual.Took(func() { err = l.Extend(ctx, ttl) }))
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)
		assert.Equal(t, virtual.NodeTimeout, virtual.Took(func() { err = l.Release(ctx) }))
		assert.ErrorIs(t, err, redlock.ErrNoQuorum)

		b.Resume(0, 1, 2)
		time.Sleep(3 * time.Second)
		assert.Empty(t, b.Has(key), "the SETs were executed late, and cleaned up after")
		assert.Empty(t, b.Has("held"))
	})
}

// Case 16: redsync scaled its timeout from the ttl and waited half an hour.
func TestAcquireNodeTimeoutDoesNotGrowWithTheTTL(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Stall(0, 1)
		assert.Equal(t, virtual.NodeTimeout, virtual.Took(func() {
			_, err := b.Redlock.TryAcquire(ctx, key, 10*time.Hour)
			assert.ErrorIs(t, err, redlock.ErrNoQuorum)
		}))
	})
}

func TestAcquireWithACancelledContextAsksNoNode(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		c, cancel := context.WithCancel(ctx)
		cancel()
		_, err := b.Redlock.TryAcquire(c, key, ttl)
		assert.ErrorIs(t, err, context.Canceled)
		_, err = b.Redlock.Acquire(c, key, ttl)
		assert.ErrorIs(t, err, context.Canceled)
		b.Settle()
		assert.Empty(t, b.Commands(0))
	})
}

// Case 6: node-redlock handed out a lock with −306 ms of validity.
func TestAcquireReturnsNoLockThatExpiredOnArrival(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{NodeTimeout: time.Second}, func(b *virtual.Bed) {
		b.Warm()
		b.Delay(0, 600*time.Millisecond)
		_, err := b.Redlock.TryAcquire(ctx, key, 300*time.Millisecond)
		require.ErrorIs(t, err, redlock.ErrExpired)
		assert.NotErrorIs(t, err, redlock.ErrHeld)
		assert.Empty(t, b.Has(key))

		time.Sleep(2 * time.Second)
		// 590 ms of a ttl of 600 ms are gone, and the drift takes 8 more: 2 are
		// left. With three milliseconds less of ttl, none are.
		b.Delay(0, 590*time.Millisecond)
		l := b.Acquire("just", 600*time.Millisecond)
		assert.Equal(t, 2*time.Millisecond, time.Until(l.Until()))
		_, err = b.Redlock.TryAcquire(ctx, "not", 597*time.Millisecond)
		assert.ErrorIs(t, err, redlock.ErrExpired)
	})
}

// Case 9: redlock-py raised on a 2-of-3 quorum and leaked both keys.
func TestAcquireWithAFailedMinoritySucceeds(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(1)
		for range 3 {
			l := b.Acquire(key, ttl)
			b.Settle()
			assert.Equal(t, []int{0, 2}, b.Has(key))
			require.NoError(t, l.Extend(ctx, ttl))
			require.NoError(t, l.Release(ctx))
			assert.Empty(t, b.Has(key))
		}
	})
}

// Case 7: node-redlock never resolved with 1 of 2 or 2 of 4 nodes up.
func TestAcquireOnAnEvenNumberOfNodes(t *testing.T) {
	for n, tolerates := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3} {
		virtual.Run(t, n, redlock.Config{}, func(b *virtual.Bed) {
			for down := range n {
				if down > tolerates {
					_, err := b.Redlock.TryAcquire(ctx, key, ttl)
					assert.ErrorIs(t, err, redlock.ErrNoQuorum, "%d of %d down", down, n)
				} else {
					l := b.Acquire(key, ttl)
					require.NoError(t, l.Release(ctx), "%d of %d down", down, n)
				}
				b.Settle()
				assert.Empty(t, b.Has(key))
				b.Masters.Kill(down)
			}
		})
	}
}

// go-redis' default client dials five times before it reports a refused dial. A caller that waits
// for a majority learns of it at once.
func TestAcquireKnowsRefusedConnectionsAtOnce(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Masters.Kill(0, 1, 2)
		for range 10 {
			var err error
			assert.Zero(t, virtual.Took(func() { _, err = b.Redlock.TryAcquire(ctx, key, ttl) }))
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			assert.Contains(t, fmt.Sprint(err), "refused")
			assert.Empty(t, b.Has(key), "on return nothing is left on the survivors")
			time.Sleep(30 * time.Millisecond)
		}
		require.NoError(t, b.Masters.Restart(0, 1, 2))
		time.Sleep(2 * time.Second) // go-redis remembers failed dials for up to a second
		require.NoError(t, b.Acquire(key, ttl).Release(ctx))
	})
}

func TestAcquireOfAHeldKey(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		b.Warm()
		other := b.NewRedlock(redlock.Config{})
		l := b.Acquire(key, ttl)
		b.Settle()
		for i := range 5 {
			assert.Equal(t, []string{"SET"}, b.Commands(i))
		}
		_, err := other.TryAcquire(ctx, key, ttl)
		require.ErrorIs(t, err, redlock.ErrHeld)
		assert.NotErrorIs(t, err, redlock.ErrNoQuorum)
		assert.NotContains(t, fmt.Sprint(err), l.Value())
		b.Settle()
		for i := range 5 {
			if sent := b.Commands(i); len(sent) > 0 { // asked before the decision
				assert.Len(t, sent, 2, "one command, and one for its clean-up")
				assert.Equal(t, "SET", sent[0])
				assert.Contains(t, sent[1], "EVAL")
			}
		}
		assert.Equal(t, []int{0, 1, 2, 3, 4}, b.Has(key), "nobody else's key was touched")
		require.NoError(t, l.Release(ctx))
	})
}

func TestAcquireOfAKeyOfAnotherTypeIsHeld(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		for _, m := range b.Masters.All() {
			_, err := m.Miniredis().Lpush(key, "x")
			require.NoError(t, err)
		}
		_, err := b.Redlock.TryAcquire(ctx, key, ttl)
		assert.ErrorIs(t, err, redlock.ErrHeld)
		c, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err = b.Redlock.Acquire(c, key, ttl)
		assert.ErrorIs(t, err, redlock.ErrHeld)
		assert.Equal(t, []int{0, 1, 2}, b.Has(key))
	})
}

func TestTraceReportsEveryNode(t *testing.T) {
	traces := make(chan redlock.Trace, 10)
	virtual.Run(t, 3, redlock.Config{Trace: func(tr redlock.Trace) { traces <- tr }}, func(b *virtual.Bed) {
		b.Warm()
		for range 3 {
			<-traces
		}
		b.Masters.Master(0).Delay(3*time.Millisecond, 0)
		b.Masters.Master(1).Delay(2*time.Millisecond, 0)
		b.Steal(key, ttl, 2)
		b.Acquire(key, ttl)
		tr := <-traces
		assert.Equal(t, "acquire", tr.Op)
		assert.Equal(t, quorum.Won, tr.Outcome)
		assert.Equal(t, 2, tr.Granted)
		assert.Equal(t, 2, tr.Need)
		assert.Equal(t, 3*time.Millisecond, tr.Elapsed)
		require.Len(t, tr.Nodes, 3)
		assert.Equal(t, redlock.NodeTrace{Addr: b.Masters.Master(0).Addr(), Vote: quorum.Granted, Latency: 3 * time.Millisecond}, tr.Nodes[0])
		assert.Equal(t, quorum.Refused, tr.Nodes[2].Vote)
		assert.Error(t, tr.Nodes[2].Err)
	})
}

// counted counts the bytes that are read from a source.
type counted struct {
	source io.Reader
	n      atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// A cloned machine has a copy of bytes that were read ahead, and would give its locks the same
// values.
func TestAcquireReadsNoRandomBytesAhead(t *testing.T) {
	values := func() (all []string) {
		source := &counted{source: rand.NewChaCha8([32]byte{7})}
		virtual.Run(t, 3, redlock.Config{Rand: source}, func(b *virtual.Bed) {
			for range 3 {
				before := source.n.Load()
				l := b.Acquire(key, time.Second)
				assert.Equal(t, before+16, source.n.Load(), "one value")
				id, err := uuid.Parse(l.Value()[:36])
				require.NoError(t, err)
				assert.Equal(t, uuid.Version(4), id.Version())
				assert.Equal(t, uuid.RFC4122, id.Variant())
				all = append(all, l.Value())
				require.NoError(t, l.Release(ctx))
			}
		})
		return all
	}
	first := values()
	assert.Equal(t, first, values(), "one seed, one run")
	assert.NotEqual(t, first[0], first[1])
}
