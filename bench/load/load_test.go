package load

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/subject"
)

// ledger is a subject in memory that records its calls.
type ledger struct {
	mu       sync.Mutex
	held     map[string]bool
	acquires int
	fail     error         // what an acquisition returns after the warm-up
	hang     chan struct{} // if set, an acquisition waits until it is closed
}

func (l *ledger) Close() error           { return nil }
func (l *ledger) Caller() subject.Caller { return &entry{ledger: l} }

type entry struct {
	*ledger
	key string
}

func (e *entry) Acquire(_ context.Context, key string) error {
	e.mu.Lock()
	fail, hang := e.fail, e.hang
	e.acquires++
	twice := e.held[key]
	e.held[key] = fail == nil
	e.key = key
	e.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if twice {
		return errors.New("two callers have one key")
	}
	return fail
}

func (e *entry) Release(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.held, e.key)
	return nil
}

func TestATurnMakesAsManyCyclesAsItIsTold(t *testing.T) {
	l := &ledger{held: make(map[string]bool)}
	warm := 0
	o, err := Run(t.Context(), l, Turn{
		Callers: 40, Cycles: 1000,
		Begin: func() error { warm = l.acquires; return nil },
	})
	require.NoError(t, err)
	assert.Equal(t, 40*warmCycles, warm)
	assert.Equal(t, 1000, o.Cycles)
	assert.Equal(t, 1000, l.acquires-warm)
	assert.Zero(t, o.Errors, "no key is used by two callers: %v", o.Err)
	assert.Positive(t, o.PerSecond)
	assert.LessOrEqual(t, o.Acquire.Latency().P50, o.Cycle.Latency().Max)
}

func TestFailedCyclesAreCountedAndNotTimed(t *testing.T) {
	l := &ledger{held: make(map[string]bool)}
	failure := errors.New("no")
	o, err := Run(t.Context(), l, Turn{
		Callers: 3, Cycles: 30,
		Begin: func() error { l.fail = failure; return nil },
	})
	require.NoError(t, err)
	assert.Equal(t, 30, o.Errors)
	assert.Zero(t, o.Cycles)
	assert.ErrorIs(t, o.Err, failure)
	assert.Zero(t, o.Cycle.Latency().Max)
}

// A cycle that hangs is cut at the limit, and counts as failed.
func TestATurnEndsAtItsLimit(t *testing.T) {
	l := &ledger{held: make(map[string]bool)}
	hang := make(chan struct{})
	o, err := Run(t.Context(), l, Turn{
		Callers: 2, For: time.Millisecond, Limit: 20 * time.Millisecond,
		Begin: func() error { l.hang = hang; return nil },
		End:   func() { close(hang) },
	})
	require.NoError(t, err)
	assert.Equal(t, 2, o.Errors)
	assert.Zero(t, o.Cycles)
	assert.ErrorIs(t, o.Err, errCut)
}

func TestATurnEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, &ledger{held: make(map[string]bool)}, Turn{
		Callers: 2, For: time.Hour,
		Begin: func() error { cancel(); return nil },
	})
	assert.ErrorIs(t, err, context.Canceled)
}
