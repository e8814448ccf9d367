package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scene"
)

// A viewer of a seed sees its events until the work is done, messages and votes, the masters' keys, the
// violations with the reason that excuses them, and the verdict last.
func TestShow(t *testing.T) {
	c := Config{Seed: 137, Nodes: 3, Clients: 2, For: 500 * time.Millisecond, Faults: []Kind{Amnesia}, Fencing: Off, Guard: Off}
	type told struct {
		at   time.Duration
		line scene.Line
	}
	var lines []told
	r, err := Show(c, func(at time.Duration, l scene.Line) { lines = append(lines, told{at, l}) })
	require.NoError(t, err)
	begin, ok := lines[0].line.(scene.Begin)
	require.True(t, ok)
	assert.Equal(t, scene.Begin{Mode: "sim", Nodes: 3, Clients: 2, Quorum: 2, Seed: "137", TTL: begin.TTL, Timeout: begin.Timeout, Fair: r.Plan.Fair, Command: c.Command("--exact"), Text: begin.Text}, begin)
	over, ok := lines[len(lines)-1].line.(scene.Over)
	require.True(t, ok)
	assert.Equal(t, r.Fingerprint(), over.Fingerprint)
	assert.Equal(t, r.Granted, over.Granted)

	seen := map[history.Kind]int{}
	forgot, stored, arrived := 0, 0, map[int]bool{}
	var excused []scene.Violation
	for i, l := range lines {
		switch line := l.line.(type) {
		case scene.Event:
			seen[line.Event.Kind]++
			assert.LessOrEqual(t, line.Event.At, r.Calm)
		case scene.Master:
			forgot = max(forgot, line.Forgot)
			stored = max(stored, len(line.Keys))
		case scene.Arrived:
			arrived[line.ID] = true
		case scene.Sent:
			assert.NotEmpty(t, line.What)
			assert.LessOrEqual(t, line.Node, 3)
		case scene.Violation:
			excused = append(excused, line)
			continue
		}
		if i > 0 && len(excused) == 0 {
			assert.GreaterOrEqual(t, l.at, lines[i-1].at)
		}
	}
	for _, kind := range []history.Kind{history.Asked, history.Granted, history.Voted, history.Stored, history.Fault} {
		assert.NotZero(t, seen[kind], kind)
	}
	assert.NotZero(t, forgot)
	assert.NotZero(t, stored)
	assert.Greater(t, len(arrived), 50)
	require.Len(t, excused, len(r.Excused))
	assert.Contains(t, excused[0].Excused, `under the fault "amnesia"`)
	assert.Len(t, excused[0].Clients, 2)

	_, err = Show(Config{Nodes: 100}, nil)
	assert.ErrorContains(t, err, "nodes is 100")
}

// A plan can have clients that never run. Of the first seeds, 53 has.
func TestShowOfAClientThatNeverRuns(t *testing.T) {
	p, err := Draw(Config{Seed: 53})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return len(c.TTLs) == 0 }))
	assert.NotZero(t, beginOf(p).TTL)
}
