package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// A trial changes nothing of the plan for what comes before it.
func TestATrialIsDrawnBehindEverythingElse(t *testing.T) {
	for seed := range uint64(100) {
		plain := draw(t, Config{Seed: seed, Faults: Within})
		for _, kind := range Trials {
			p := draw(t, Config{Seed: seed, Faults: append([]Kind{kind}, Within...)})
			if p.Nodes == 1 && (kind == Minority || kind == HalfCutOff) {
				require.Nil(t, p.Trial)
				continue
			}
			require.Equal(t, kind, p.Trial.Kind)
			require.Equal(t, plain.Faults, p.Faults)
			require.Equal(t, plain.Clients, p.Clients[:p.Trial.First])
			require.Len(t, plain.Clients, p.Trial.First)
			require.Greater(t, len(p.Clients), p.Trial.First+p.Trial.Well, "a trial has sick clients")
			for _, c := range p.Clients[p.Trial.First:] {
				require.False(t, c.runs(), "the client only takes part in the trial")
			}
		}
	}
}

// Runs draw every kind except those that take too long.
func TestTrialsAreDrawn(t *testing.T) {
	drawn := map[Kind]int{}
	for seed := range uint64(800) {
		if p := draw(t, Config{Seed: seed}); p.Trial != nil {
			drawn[p.Trial.Kind]++
		}
	}
	for _, kind := range Trials {
		if slices.Contains(undrawn, kind) {
			assert.Zero(t, drawn[kind], kind)
		} else {
			assert.NotZero(t, drawn[kind], kind)
		}
	}
}

// tried runs a trial of the given length, with the first seed that suits.
func tried(t *testing.T, kind Kind, length time.Duration, suits func(*TrialPlan) bool) Result {
	t.Helper()
	for seed := uint64(1); ; seed++ {
		require.Less(t, seed, uint64(200))
		p := draw(t, Config{Seed: seed, Nodes: 3, Clients: 1, For: 100 * time.Millisecond, Faults: []Kind{kind}, Fencing: Off, Guard: Off})
		if !suits(p.Trial) {
			continue
		}
		p.Trial.For = length
		return simulate(p, nil)
	}
}

// turnsOf counts the locks on a key of each of the trial's clients, from 0.
func turnsOf(r Result, key string) []int {
	turns := make([]int, len(r.Plan.Clients)-r.Plan.Trial.First)
	for _, l := range history.Locks(r.Events) {
		if l.Key == key {
			turns[l.Client-1-r.Plan.Trial.First]++
		}
	}
	return turns
}

// A trial ails the sick and nobody else, and only in its second part.
func TestATrialAilsTheSick(t *testing.T) {
	const length = 3 * time.Second
	for kind, wins := range map[Kind]bool{SlowLink: false, Minority: false, HalfCutOff: false, Frozen: true, Foreign: true, DaysApart: true} {
		r := tried(t, kind, length, func(p *TrialPlan) bool { return !p.Able })
		well := r.Plan.Trial.Well
		control, trial, healed := turnsOf(r, controlKey), turnsOf(r, trialKey), turnsOf(r, healedKey)
		for client := range control {
			assert.Equal(t, client < well || kind == Foreign, control[client] > 0, "%s: %v", kind, control)
			assert.Equal(t, 1, healed[client], "%s: %v", kind, healed)
		}
		for _, n := range trial[well:] {
			assert.Equal(t, wins, n > 0, "%s: %v", kind, trial)
		}
		for _, v := range r.Violations {
			assert.Contains(t, []string{Progress, Stuck}, v.Rule, "%s: %v", kind, v)
		}
	}
	r := tried(t, SlowLink, length, func(p *TrialPlan) bool { return p.Able })
	assert.NotZero(t, turnsOf(r, trialKey)[r.Plan.Trial.Well], "the link is slow, and the client has time for it")
}

// Frozen waiters execute nothing for many seconds, all at the same time.
func TestWaitersFreeze(t *testing.T) {
	r := tried(t, Frozen, 30*time.Second, func(*TrialPlan) bool { return true })
	stand, most := map[int]bool{}, 0
	for _, e := range r.Events {
		switch e.Kind {
		case history.Paused:
			stand[e.Client] = true
		case history.Resumed:
			delete(stand, e.Client)
		case history.Asked, history.Granted:
			assert.False(t, stand[e.Client], e)
		}
		most = max(most, len(stand))
	}
	assert.Equal(t, len(r.Plan.Clients)-r.Plan.Trial.First-r.Plan.Trial.Well, most)
	assert.Empty(t, stand)
}

// The locks of foreign clients are in the history, and are judged like all others.
func TestForeignClientsAreJudged(t *testing.T) {
	r := tried(t, Foreign, 5*time.Second, func(*TrialPlan) bool { return true })
	first := r.Plan.Trial.First + r.Plan.Trial.Well
	i := slices.IndexFunc(r.Events, func(e history.Event) bool {
		return e.Kind == history.Granted && e.Client > first && e.Key == trialKey
	})
	require.GreaterOrEqual(t, i, 0)
	granted := r.Events[i]
	stored := slices.ContainsFunc(r.Events, func(e history.Event) bool {
		return e.Kind == history.Stored && e.Client == granted.Client && e.Op == granted.Op
	})
	assert.True(t, stored, "the nodes have its key")
	wakes := slices.ContainsFunc(r.Events, func(e history.Event) bool {
		return e.Kind == history.Voted && e.Client == granted.Client && strings.Contains(e.Text, stands)
	})
	assert.False(t, wakes, "a foreign client does not queue")
	steals := append(slices.Clone(r.Events), history.Event{At: granted.At, Kind: history.Granted, Client: 1, Op: 999, Key: trialKey, Until: granted.Until})
	history.Sort(steals)
	var broken []string
	for _, v := range history.Check(steals) {
		broken = append(broken, v.Rule)
	}
	assert.Contains(t, broken, history.Exclusion)
}
