package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Clients queue, are woken, and overtake nobody if they are fair.
func TestClientsQueue(t *testing.T) {
	for _, fair := range []Switch{On, Off} {
		r := run(t, Config{Seed: 3, Nodes: 3, Clients: 4, Faults: []Kind{}, Fair: fair, Fencing: Off})
		assert.Empty(t, r.Violations, r.Plan.Config.Command())
		require.Equal(t, fair == On, r.Plan.Fair)
		all, most := map[string]*waiters{}, 0
		stood, got := 0, map[string]int{}
		for _, e := range r.Events {
			most = max(most, len(follow(all, e).list))
			if ticketOf(e) > 0 {
				stood++
			}
			if e.Kind == history.Granted {
				got[e.Key]++
			}
		}
		assert.GreaterOrEqual(t, most, 4, "clients waiting at one time")
		assert.Greater(t, stood, 50)
		assert.Equal(t, (4+2)*3, got[lineKey])
		assert.NotZero(t, got[troubledKey(0)])
		assert.NotZero(t, got[troubledKey(1)])
	}
}

// Faults of waking do what they say, and excuse nothing.
func TestWakeFaults(t *testing.T) {
	for kind, says := range map[Kind]string{LoseWake: "loses wake-ups", LateWake: "wakes up", Deafen: "subscribers cut off"} {
		r := run(t, Config{Seed: 2, Nodes: 3, Clients: 4, For: 2 * time.Second, Faults: []Kind{kind}})
		assert.Empty(t, r.Violations, r.Plan.Config.Command())
		assert.Empty(t, r.Excused)
		n, until := 0, map[int]time.Duration{}
		for _, e := range r.Events {
			if e.Kind == history.Fault && e.Node > 0 {
				n++
				assert.Contains(t, e.Text, says)
				assert.GreaterOrEqual(t, e.At, until[e.Node], "faults of one node do not overlap")
				until[e.Node] = e.Until
			}
		}
		assert.Greater(t, n, 2)
		assert.Greater(t, r.Granted, 20)
	}
}

// Each trouble happens in some run, and ends.
func TestTroublesAreDrawn(t *testing.T) {
	seen := map[string]bool{}
	for seed := uint64(1); len(seen) < len(troubles); seed++ {
		require.Less(t, seed, uint64(60))
		for _, n := range stream(seed, "troubles").Perm(len(troubles))[:2] {
			seen[troubles[n].name] = true
		}
	}
	r := run(t, Config{Seed: 1, Nodes: 1, Clients: 3, Faults: []Kind{}, Fencing: Off})
	n := 0
	for _, e := range r.Events {
		for _, trouble := range troubles {
			if e.Kind == history.Fault && strings.HasPrefix(e.Text, trouble.name+", ") {
				n++
			}
		}
	}
	assert.Equal(t, 2, n)
}
