package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Some runs have tokens and the guard, and none has them if they are switched off.
func TestTokensAndTheGuardAreDrawn(t *testing.T) {
	fenced, guarded, forgetting := 0, 0, 0
	for seed := range uint64(400) {
		p := draw(t, Config{Seed: seed})
		if p.Fencing {
			fenced++
		}
		if p.Guard > 0 {
			guarded++
			if slices.Contains(p.Kinds, Deposed) {
				require.Equal(t, p.longest()+maxLag+time.Second, p.Guard)
			} else {
				require.Equal(t, p.longest(), p.Guard)
			}
			if anyOf(p.Kinds, []Kind{Amnesia, FailOver, FailBack}) {
				forgetting++
			}
			for _, c := range p.Clients {
				require.LessOrEqual(t, c.Rate, 1+c.Drift.Factor)
			}
		}
		off := draw(t, Config{Seed: seed, Fencing: Off, Guard: Off})
		require.False(t, off.Fencing)
		require.Zero(t, off.Guard)
		require.Equal(t, p.Faults, off.Faults, "nothing else changes")
		on := draw(t, Config{Seed: seed, Fencing: On, Guard: On})
		require.True(t, on.Fencing)
		require.NotZero(t, on.Guard)
		require.Equal(t, p.Faults, on.Faults)
	}
	assert.InDelta(t, 200, fenced, 40)
	assert.Greater(t, guarded, 50)
	assert.Less(t, guarded, 200)
	assert.Greater(t, forgetting, 10)
}

// A client that is replaced has a successor that differs in its clock alone. Later faults
// of the client hit the successor.
func TestSuccessors(t *testing.T) {
	replaced, hit := 0, 0
	for seed := range uint64(100) {
		c := Config{Seed: seed, Clients: 3, Faults: []Kind{Replace, Pause}}
		p := draw(t, c)
		clients := 3
		for i, f := range p.Faults {
			old := p.Clients[f.Client]
			require.True(t, old.runs())
			if old.To > 0 {
				require.LessOrEqual(t, f.At, old.To)
			}
			if old.From > 0 {
				hit++
			}
			if f.Kind != Replace {
				continue
			}
			require.Less(t, old.From, f.At)
			replaced++
			clients++
			require.Equal(t, f.At, old.To)
			without := c
			without.Without = []int{i + 1}
			q := draw(t, without)
			require.Len(t, q.Clients, len(p.Clients), "the others keep their numbers")
		}
		require.Len(t, p.Clients, clients)
		left := 0
		for _, c := range p.Clients {
			if c.stays() {
				left++
			}
		}
		require.Equal(t, 3, left)
	}
	assert.Greater(t, replaced, 100)
	assert.NotZero(t, hit)
}

// Where nodes forget, tokens rest on the clients' clocks: in some runs the clocks agree
// well enough, and in some they do not.
func TestClocksAgreeInSomeRuns(t *testing.T) {
	agree, apart := 0, 0
	for seed := range uint64(200) {
		p := draw(t, Config{Seed: seed, Faults: []Kind{Amnesia, Replace}, Guard: On})
		require.False(t, p.Agree && p.apart(p.For))
		if p.Agree {
			agree++
		} else if p.apart(p.For) {
			apart++
		}
	}
	assert.Greater(t, agree, 60)
	assert.Greater(t, apart, 60)
	assert.False(t, draw(t, Config{Seed: 1, Faults: []Kind{Crash}}).Agree)
}

// With the guard, a node that forgot explains no second holder, except to a client that
// could not know.
func TestTheGuardExcusesLess(t *testing.T) {
	first := history.Lock{Client: 1, Op: 1, Key: "k", Token: 9}
	second := history.Lock{Client: 2, Op: 7, Key: "k", Token: 8}
	old := []history.Event{
		{At: 90, Kind: history.Asked, Client: 1, Op: 1, Key: "k"},
		{At: 95, Kind: history.Voted, Client: 2, Node: 1, Op: 1, Key: "k"},
		{At: 100, Kind: history.Voted, Client: 1, Node: 1, Op: 1, Key: "k"},
		{At: 100, Kind: history.Stored, Client: 1, Op: 1, Node: 1, Key: "k", Until: 200},
	}
	newcomer := append(old[:1:1], old[2:]...)
	newcomer = append(newcomer, history.Event{At: 140, Kind: history.Voted, Client: 2, Node: 1, Op: 7, Key: "k"})
	for name, c := range map[string]struct {
		faults    []FaultPlan
		events    []history.Event
		rule      string
		guardless Kind
		guarded   Kind
	}{
		"amnesia":               {[]FaultPlan{{Kind: Amnesia, At: 120, For: 5}}, old, history.Exclusion, Amnesia, ""},
		"its keys are gone":     {[]FaultPlan{{Kind: Amnesia, At: 120, For: 5}}, old, Coverage, Amnesia, Amnesia},
		"fail-over":             {[]FaultPlan{{Kind: FailOver, At: 120, For: 5}}, old, history.Exclusion, FailOver, ""},
		"a newcomer":            {[]FaultPlan{{Kind: FailOver, At: 120, For: 5}}, newcomer, history.Exclusion, FailOver, ""},
		"newcomer, restart":     {[]FaultPlan{{Kind: Amnesia, At: 120, For: 5}}, newcomer, history.Exclusion, Amnesia, ""},
		"fail-back":             {[]FaultPlan{{Kind: FailBack, At: 120, For: 5}}, old, history.Context, FailBack, ""},
		"before it forgot":      {[]FaultPlan{{Kind: FailBack, At: 120, For: 50}}, old, history.Context, "", ""},
		"jump-ahead":            {[]FaultPlan{{Kind: JumpAhead, At: 120, For: 5}}, old, history.Exclusion, JumpAhead, JumpAhead},
		"a jump of the uptime":  {[]FaultPlan{{Kind: Amnesia, At: 120, For: 5}, {Kind: JumpAhead, At: 130}}, old, history.Exclusion, Amnesia, JumpAhead},
		"that of another":       {[]FaultPlan{{Kind: Amnesia, At: 120, For: 5}, {Kind: JumpAhead, Node: 1, At: 130}}, old, history.Exclusion, Amnesia, ""},
		"tokens, no fault":      {nil, old, history.Fencing, "", ""},
		"tokens, amnesia":       {[]FaultPlan{{Kind: Amnesia, At: 120, For: 5}}, old, history.Fencing, Amnesia, ""},
		"tokens, late amnesia":  {[]FaultPlan{{Kind: AmnesiaOK, At: 120, For: 25}}, old, history.Fencing, AmnesiaOK, ""},
		"tokens, a crash":       {[]FaultPlan{{Kind: Crash, At: 120, For: 5}}, old, history.Fencing, "", ""},
		"tokens, a newcomer":    {[]FaultPlan{{Kind: FailOver, At: 120, For: 5}}, newcomer, history.Fencing, FailOver, ""},
		"empty promotion":       {[]FaultPlan{{Kind: EmptyPromotion, At: 120, For: 5}}, newcomer, history.Exclusion, EmptyPromotion, ""},
		"tokens, before either": {[]FaultPlan{{Kind: Amnesia, At: 70, For: 5}}, old, history.Fencing, "", ""},
		"tokens, afterwards":    {[]FaultPlan{{Kind: Amnesia, At: 151, For: 5}}, old, history.Fencing, "", ""},
	} {
		p := Plan{Nodes: 3, Clients: []ClientPlan{{Rate: 1}, {Rate: 1}}, Faults: c.faults}
		v := history.Violation{At: 150, Rule: c.rule, Key: "k", Locks: []history.Lock{first, second}}
		assert.Equal(t, c.guardless, excuse(p, c.events, v), name)
		p.Guard = time.Second
		assert.Equal(t, c.guarded, excuse(p, c.events, v), "%s, guarded", name)
		if p.Clients[1].Offset = -time.Second; c.rule == history.Fencing && c.guardless != "" {
			assert.Equal(t, ClocksApart, excuse(p, c.events, v), "%s, guarded, and clocks are apart", name)
		}
	}
	changed := history.Violation{At: 150, Rule: history.Fencing, Key: "k", Locks: []history.Lock{first, first}}
	assert.Empty(t, excuse(Plan{Clients: []ClientPlan{{}}, Faults: []FaultPlan{{Kind: Amnesia, At: 120}}}, old, changed), "nothing changes a lock's token")
}

// In the model the keys of a dead client live on, unless a node forgot them.
func TestTheDeadExcuseTheModel(t *testing.T) {
	dead := []history.Event{
		{At: 100, Kind: history.Asked, Client: 1, Op: 1, Key: "k"},
		{At: 105, Kind: history.Stored, Client: 1, Op: 1, Node: 1, Key: "k", Until: 200},
		{At: 110, Kind: history.Granted, Client: 1, Op: 1, Key: "k", Until: 195},
		{At: 115, Kind: history.Died, Client: 1},
	}
	next := history.Lock{Client: 2, Op: 1, Key: "k", Asked: 130, Granted: 150, Until: 300}
	v := history.Violation{At: 150, Rule: history.Model, Key: "k", Locks: []history.Lock{next}}
	for name, c := range map[string]struct {
		kind   Kind
		events []history.Event
		guard  time.Duration
		want   Kind
	}{
		"forgot":                 {Amnesia, dead, 0, Amnesia},
		"forgot, and the guard":  {Amnesia, dead, 100, ""},
		"remembers":              {Crash, dead, 0, ""},
		"lives, so they overlap": {Amnesia, dead[:3], 0, ""},
	} {
		r := Result{Plan: Plan{Nodes: 1, Guard: c.guard, Clients: []ClientPlan{{Rate: 1}, {Rate: 1}}, Faults: []FaultPlan{{Kind: c.kind, At: 120, For: 5}}}, Events: c.events}
		r.judge([]history.Violation{v})
		if c.want == "" {
			assert.Equal(t, []history.Violation{v}, r.Violations, name)
		} else {
			assert.Equal(t, []Excuse{{v, c.want}}, r.Excused, name)
		}
	}
}

// The votes of a server that has just restarted do not count. Those of another server that
// has taken its place may.
func TestYoungServers(t *testing.T) {
	p := Plan{Guard: 100, Faults: []FaultPlan{{Kind: Amnesia, Node: 1, At: 1000, For: 10}}}
	for at, want := range map[time.Duration]bool{1009: false, 1010: true, 1109: true, 1110: false} {
		assert.Equal(t, want, p.young(1, at), at)
		assert.False(t, p.young(0, at))
	}
	p.Faults = append(p.Faults, FaultPlan{Kind: JumpAhead, Node: 1, At: 1020, For: 50})
	assert.True(t, p.young(1, 1059))
	assert.False(t, p.young(1, 1060))
	p.Faults = append(p.Faults, FaultPlan{Kind: FailOver, Node: 1, At: 1030, For: 5})
	assert.False(t, p.young(1, 1040))
}

// The tally counts the runs that each kind explains, and what was violated in them.
func TestTally(t *testing.T) {
	var tally Tally
	tally.Add(Result{Plan: Plan{Config: Config{Seed: 3}, Kinds: []Kind{Amnesia}, Fencing: true}, Excused: []Excuse{
		{history.Violation{Rule: history.Exclusion}, Amnesia}, {history.Violation{Rule: history.Model}, Amnesia}, {history.Violation{Rule: history.Fencing}, Amnesia},
	}})
	tally.Add(Result{Plan: Plan{Kinds: []Kind{Amnesia}}, Excused: []Excuse{{history.Violation{Rule: Coverage}, Amnesia}}})
	assert.Contains(t, tally.String(), "amnesia in 2 of 2 runs, first with seed 3 (1 had two holders, 1 a token that went back)")
	assert.Contains(t, tally.String(), "of 2 runs, 1 had two holders, 1 a token that went back")
}
