//go:build linux

package chaos

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/history"
)

// Exclusion holds and nothing is left behind, whatever fails within the assumptions
// of docs/safety.md.
func TestStorm(t *testing.T) {
	require.GreaterOrEqual(t, *stormMasters, 1, "-chaos.masters")
	require.GreaterOrEqual(t, *stormClients, 1, "-chaos.clients")
	seed := *stormSeed
	for seed == 0 {
		seed = rand.Uint64()
	}
	f := newField(t, *stormMasters, *stormClients, seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the same faults again, at other instants: go test ./internal/chaos -run '^TestStorm$' "+
				"-chaos.seed=%d -chaos.for=%v -chaos.clients=%d -chaos.masters=%d",
				seed, *stormFor, *stormClients, *stormMasters)
		}
	})
	for _, s := range f.seats {
		require.NoError(t, f.seatClient(s, 0))
	}

	storm := f.rage(*stormFor)
	f.settle()
	f.expectEmpty()

	events := f.log.Events()
	violations := history.Check(events)
	storm.report(events, len(violations))
	if len(violations) > 0 || t.Failed() {
		f.accuse(events, violations)
	}
	storm.expectWork(events)
}

// A majority that forgets at once gives a lock away twice, and that is found: what
// TestStorm does not find was not there.
func TestAmnesiaIsFound(t *testing.T) {
	const masters, forgetful = 5, 3
	f := newField(t, masters, 2, 1)
	require.NoError(t, f.seatClient(f.seats[0], time.Hour))
	f.await(history.Granted, 1)

	var g sync.WaitGroup
	for i, m := range f.masters[:forgetful] {
		g.Go(func() {
			begun := f.clock.now()
			m.Kill()
			if err := m.wipe(); err != nil {
				t.Error(err)
			}
			if err := m.Restart(); err != nil {
				t.Error(err)
			}
			f.fault("crash and forget, and come back at once", begun, 0, i+1)
		})
	}
	g.Wait()
	require.NoError(t, f.seatClient(f.seats[1], time.Hour))
	f.await(history.Granted, 2)
	f.settle()

	violations := history.Check(f.log.Events())
	require.NotEmpty(t, violations)
	found := violations[0]
	require.Equal(t, history.Exclusion, found.Rule)
	require.Equal(t, keys[0], found.Key)
	require.Len(t, found.Locks, 2)
	require.Equal(t, []int{1, 2}, []int{found.Locks[0].Client, found.Locks[1].Client})
}
