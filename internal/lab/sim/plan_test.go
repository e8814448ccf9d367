package sim

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

func draw(t *testing.T, c Config) Plan {
	t.Helper()
	p, err := Draw(c)
	require.NoError(t, err)
	return p
}

// first lists the clients that run from the beginning.
func first(p Plan) []ClientPlan {
	return slices.DeleteFunc(slices.Clone(p.Clients), func(c ClientPlan) bool { return c.From > 0 })
}

func TestASeedDrawsOnePlan(t *testing.T) {
	for seed := range uint64(200) {
		p := draw(t, Config{Seed: seed})
		require.Equal(t, p, draw(t, Config{Seed: seed}))
		require.Contains(t, []int{1, 2, 3, 4, 5, 7}, p.Nodes)
		require.GreaterOrEqual(t, len(p.Clients), 2)
		require.LessOrEqual(t, len(first(p)), 8)
	}
}

// Every kind is drawn in some runs, and switched off in others.
func TestKindsAreSwitchedOff(t *testing.T) {
	drawn := map[Kind]int{}
	for seed := range uint64(400) {
		for _, k := range draw(t, Config{Seed: seed}).Kinds {
			drawn[k]++
		}
	}
	for _, k := range Within {
		assert.Greater(t, drawn[k], 75, k)
		assert.Less(t, drawn[k], 320, k)
	}
	for _, k := range Beyond {
		assert.Greater(t, drawn[k], 5, k)
	}
}

// The clocks of clients are within what their drift allows for, unless that is the fault.
func TestClocksAreWithinTheirDrift(t *testing.T) {
	slowest, fastest := 2.0, 0.0
	for seed := range uint64(200) {
		for _, c := range draw(t, Config{Seed: seed, Faults: []Kind{}}).Clients {
			require.GreaterOrEqual(t, c.Rate, 1-c.Drift.Factor)
			slowest, fastest = min(slowest, c.Rate), max(fastest, c.Rate)
		}
	}
	assert.Less(t, slowest, 0.96)
	assert.Greater(t, fastest, 1.05)
}

// A run has what the config asks for, which does not change the other draws.
func TestTheConfigHasTheLastWord(t *testing.T) {
	p := draw(t, Config{Seed: 8})
	q := draw(t, Config{Seed: 8, Nodes: 9, For: 500 * time.Millisecond})
	assert.Equal(t, 9, q.Nodes)
	assert.Equal(t, 500*time.Millisecond, q.For)
	for i, c := range first(p) {
		c.To = q.Clients[i].To // the length of the faults decides when it is replaced, if at all
		assert.Equal(t, c, q.Clients[i])
	}
	assert.Len(t, first(draw(t, Config{Seed: 8, Clients: 16})), 16)
	assert.Empty(t, draw(t, Config{Seed: 8, Faults: []Kind{}}).Faults)
}

// A node that is down is not killed again, so that the end of one fault is not the end of
// another.
func TestFaultsOfOneTargetDoNotMeet(t *testing.T) {
	down := []Kind{Hang, Crash, AmnesiaOK, Amnesia, FailOver, FailBack}
	for seed := range uint64(100) {
		until := map[int]time.Duration{}
		faults := draw(t, Config{Seed: seed, Faults: down}).Faults
		slices.SortFunc(faults, func(a, b FaultPlan) int { return cmp.Compare(a.At, b.At) })
		for _, f := range faults {
			require.GreaterOrEqual(t, f.At, until[f.Node])
			until[f.Node] = f.At + f.For
		}
	}
}

func TestWhatCannotBeSimulated(t *testing.T) {
	for says, c := range map[string]Config{
		"nodes is -1":      {Nodes: -1},
		"nodes is 10":      {Nodes: 10},
		"clients is 17":    {Clients: 17},
		"for is 2m0s":      {For: 2 * time.Minute},
		"without has 1000": {Without: []int{1000}},
		"without has 0":    {Without: []int{0}},
	} {
		_, err := Draw(c)
		assert.ErrorContains(t, err, says)
	}
}

func TestParseKinds(t *testing.T) {
	kinds, err := ParseKinds("crash, delay,crash")
	require.NoError(t, err)
	assert.Equal(t, []Kind{Crash, Delay}, kinds)
	none, err := ParseKinds("none")
	require.NoError(t, err)
	assert.NotNil(t, none, "nil would be drawn")
	assert.Empty(t, none)
	all, err := ParseKinds("within,beyond")
	require.NoError(t, err)
	assert.Len(t, all, len(Within)+len(Beyond))
	trials, err := ParseKinds("trials")
	require.NoError(t, err)
	assert.Len(t, trials, len(Trials))
	_, err = ParseKinds("crsh")
	assert.ErrorContains(t, err, `"crsh"`)
	assert.ErrorContains(t, err, "crash")
}

// Command returns a command line that stands for the same config.
func TestCommand(t *testing.T) {
	assert.Equal(t, "redlock-lab sim --seed 42", Config{Seed: 42}.Command())
	assert.Equal(t, "redlock-lab sim --seed 42 --nodes 5 --clients 3 --for 2s --faults crash,delay --without 1,4",
		Config{Seed: 42, Nodes: 5, Clients: 3, For: 2 * time.Second, Faults: []Kind{Crash, Delay}, Without: []int{1, 4}}.Command())
	assert.Equal(t, "redlock-lab sim --seed 1 --fencing --guard=false", Config{Seed: 1, Fencing: On, Guard: Off}.Command())
	assert.Equal(t, "redlock-lab sim --seed 1 --fencing=false --fair", Config{Seed: 1, Fencing: Off, Fair: On}.Command())
	assert.Equal(t, "redlock-lab sim --seed 1 --faults none", Config{Seed: 1, Faults: []Kind{}}.Command())
}

// Only a fault that took a key of one of the two locks excuses a violation.
func TestExcuses(t *testing.T) {
	first := history.Lock{Client: 1, Op: 1, Key: "k"}
	second := history.Lock{Client: 2, Op: 7, Key: "k"}
	events := []history.Event{
		{At: 100, Kind: history.Stored, Client: 1, Op: 1, Node: 1, Key: "k", Until: 200},
		{At: 101, Kind: history.Stored, Client: 1, Op: 1, Node: 2, Key: "k", Until: 201},
		{At: 102, Kind: history.Stored, Client: 3, Op: 9, Node: 3, Key: "k", Until: 202},
		{At: 130, Kind: history.Removed, Client: 1, Op: 1, Node: 2, Key: "k"},
		{At: 145, Kind: history.Stored, Client: 2, Node: 3, Key: "k", Until: 300}, // of a Do
	}
	for name, c := range map[string]struct {
		fault FaultPlan
		rule  string
		want  Kind
	}{
		"a node with its key forgot":       {FaultPlan{Kind: Amnesia, Node: 0, At: 120, For: 5}, history.Exclusion, Amnesia},
		"the same for its context":         {FaultPlan{Kind: Amnesia, Node: 0, At: 120, For: 5}, history.Context, Amnesia},
		"the same for its keys":            {FaultPlan{Kind: Amnesia, Node: 0, At: 120, For: 5}, Coverage, Amnesia},
		"before it had the key":            {FaultPlan{Kind: Amnesia, Node: 0, At: 99, For: 5}, history.Exclusion, ""},
		"after the violation":              {FaultPlan{Kind: Amnesia, Node: 0, At: 151, For: 5}, history.Exclusion, ""},
		"when the key was gone anyway":     {FaultPlan{Kind: Amnesia, Node: 1, At: 140, For: 5}, history.Exclusion, ""},
		"a node with somebody else's key":  {FaultPlan{Kind: Amnesia, Node: 2, At: 120, For: 5}, history.Exclusion, ""},
		"a node with the later lock's key": {FaultPlan{Kind: JumpAhead, Node: 2, At: 147, For: 5}, history.Exclusion, JumpAhead},
		"jumped ahead":                     {FaultPlan{Kind: JumpAhead, Node: 0, At: 120, For: 5}, history.Exclusion, JumpAhead},
		"jumped back":                      {FaultPlan{Kind: JumpBack, Node: 0, At: 120, For: 5}, history.Exclusion, ""},
		"came back late":                   {FaultPlan{Kind: AmnesiaOK, Node: 0, At: 120, For: 5}, history.Exclusion, ""},
		"came back with its memory":        {FaultPlan{Kind: Crash, Node: 0, At: 120, For: 5}, history.Exclusion, ""},
		"liveness is never excused":        {FaultPlan{Kind: Amnesia, Node: 0, At: 120, For: 5}, Liveness, ""},
	} {
		p := Plan{Nodes: 3, Clients: []ClientPlan{{Rate: 1}, {Rate: 1}}, Faults: []FaultPlan{c.fault}}
		v := history.Violation{At: 150, Rule: c.rule, Key: "k", Locks: []history.Lock{first, second}}
		assert.Equal(t, c.want, excuse(p, events, v), name)
		p.Config.Without = []int{1}
		assert.Empty(t, excuse(p, events, v), "%s, left out", name)
	}
	v := history.Violation{At: 150, Rule: history.Exclusion, Key: "k", Locks: []history.Lock{first, second}}
	first.Asked, first.Until = 100, 160 // at a rate of 0.9 its keys can have expired at 154
	for at, want := range map[time.Duration]Kind{153: "", 154: SlowClient} {
		v := history.Violation{At: at, Rule: history.Exclusion, Key: "k", Locks: []history.Lock{first, second}}
		assert.Equal(t, want, excuse(Plan{Clients: []ClientPlan{{Rate: 0.9}, {Rate: 1}}}, nil, v))
	}
	assert.Empty(t, excuse(Plan{Clients: []ClientPlan{{Rate: 1}, {Rate: 0.9}}}, nil, v), "the later holder's clock harms nobody")
}

// Where holds overlap and are excused, the operations need no order. Elsewhere they do.
func TestAnOverlapExcusesTheModel(t *testing.T) {
	lock := history.Lock{Client: 1, Op: 1, Key: "k", Asked: 100, Granted: 110, Until: 200, Releasing: history.Never}
	r := Result{
		Plan: Plan{Nodes: 1, Clients: []ClientPlan{{Rate: 1}}, Faults: []FaultPlan{{Kind: Amnesia, At: 120}}},
		Events: []history.Event{
			{At: 100, Kind: history.Asked, Client: 1, Op: 1, Key: "k"},
			{At: 105, Kind: history.Stored, Client: 1, Op: 1, Node: 1, Key: "k", Until: 200},
			{At: 110, Kind: history.Granted, Client: 1, Op: 1, Key: "k", Until: 200},
		},
	}
	overlap := history.Violation{At: 150, Rule: history.Exclusion, Key: "k", Locks: []history.Lock{lock}}
	order := history.Violation{At: 150, Rule: history.Model, Key: "k", Locks: []history.Lock{lock}}
	named := history.Violation{At: 110, Rule: history.Model, Key: "k", Locks: []history.Lock{lock}}
	before := history.Violation{At: 149, Rule: history.Model, Key: "k", Locks: []history.Lock{{Client: 1, Op: 9}}}
	elsewhere := history.Violation{At: 140, Rule: history.Model, Key: "l", Locks: []history.Lock{lock}}
	r.judge([]history.Violation{overlap, order, named, before, elsewhere})
	assert.Equal(t, []history.Violation{elsewhere, before}, r.Violations)
	assert.Len(t, r.Excused, 3)
}

// Some runs draw bursts, which change nothing else of the plan.
func TestSomeClientsBurst(t *testing.T) {
	runs, clients := 0, 0
	for seed := range uint64(300) {
		p := draw(t, Config{Seed: seed})
		want := p.Keys
		if anyOf(p.Kinds, moves) {
			want++ // the key of a grip
		}
		if !p.bursts() {
			require.Len(t, p.keys(), want)
			continue
		}
		runs++
		require.Len(t, p.keys(), want+burstKeys)
		for i, c := range first(p) {
			if c.Bursts {
				clients++
			}
			c.Bursts, c.Single, c.Reentrant, c.To, c.Retention = false, false, false, 0, 0
			plain := drawClient(stream(seed, "client", i), slices.Contains(p.Kinds, SlowClient))
			require.Equal(t, plain.TTLs, c.TTLs[:len(plain.TTLs)])
			c.TTLs = plain.TTLs // a long run adds one
			if c.Offset, c.Rate = plain.Offset, plain.Rate; p.Guard == 0 && !p.Agree {
				c.Offset, c.Rate = p.Clients[i].Offset, p.Clients[i].Rate
			}
			require.Equal(t, plain, c)
		}
	}
	assert.InDelta(t, 100, runs, 30)
	assert.Greater(t, clients, 2*runs)
}
