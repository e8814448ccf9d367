package scenario

import (
	"bytes"
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/load"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

func TestEveryCellHasANameOfItsOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Cells(regexp.MustCompile("")) {
		assert.False(t, seen[c.String()], "%v", c)
		seen[c.String()] = true
		for _, name := range c.Subjects {
			_, err := subject.Of(name)
			assert.NoError(t, err)
		}
	}
}

func TestAPatternChoosesCells(t *testing.T) {
	var names []string
	for _, c := range Cells(regexp.MustCompile("^faults.*hung")) {
		names = append(names, c.String())
	}
	assert.Equal(t, []string{"faults/c=16/n=5/hung=1", "faults/c=16/n=5/hung=2"}, names)
}

// Quick leaves no subject and no scenario out.
func TestQuickCellsShowEverything(t *testing.T) {
	subjects := make(map[result.Subject]bool)
	scenarios := make(map[result.Scenario]bool)
	for _, c := range Quick(Cells(regexp.MustCompile(""))) {
		scenarios[c.Scenario] = true
		for _, name := range c.Subjects {
			subjects[name] = true
		}
	}
	assert.Len(t, subjects, len(subject.All()))
	assert.Len(t, scenarios, 6)
}

func TestEverybodyIsFirstInSomeRound(t *testing.T) {
	first := make(map[result.Subject]bool)
	for round := range everybody {
		order := rotated(everybody, round)
		assert.ElementsMatch(t, everybody, order)
		first[order[0]] = true
	}
	assert.Len(t, first, len(everybody))
}

// The fences of a turn do not hinder the next, and hide no key that another subject leaves.
func TestTurnsWithFencesLeaveNothing(t *testing.T) {
	set := masters.Start(t, 5)
	var problems []error
	r := &Runner{
		Masters: set, Turn: 20 * time.Millisecond, Progress: io.Discard,
		Problem: func(err error) { problems = append(problems, err) },
	}
	cells := Cells(regexp.MustCompile("^guarantees/c=16"))
	require.Len(t, cells, 2)
	checked, err := r.Check(t.Context(), cells)
	require.NoError(t, err)
	assert.Equal(t, 8, checked)
	for round := range 2 {
		samples, err := r.Round(t.Context(), cells, round)
		require.NoError(t, err)
		require.Len(t, samples, 8)
		for _, s := range samples {
			assert.Positive(t, s.Cycles, "%+v %s", s.Cell, s.Subject)
			assert.Zero(t, s.Errors, "%+v %s", s.Cell, s.Subject)
		}
		require.NoError(t, set.AwaitEmpty(t.Context(), 0))
	}
	require.Empty(t, problems)

	// A key that begins like a fence counts as one only for subjects with fences.
	require.NoError(t, set.Client(0).Set(t.Context(), "redlock:fence:{a}", 1, time.Hour).Err())
	spec, err := subject.Of(result.Fenced)
	require.NoError(t, err)
	require.NoError(t, r.empty(t.Context(), cells[0], spec))
	spec, err = subject.Of(result.Redislock)
	require.NoError(t, err)
	spec.Guard = 10 * time.Millisecond // which makes it impatient
	require.ErrorIs(t, r.empty(t.Context(), cells[0], spec), masters.ErrLeft)
	require.NoError(t, set.AwaitEmpty(t.Context(), 0))
}

// A subject that may leave keys may also have commands under way when its turn ends. The next
// subject is not blamed for what they leave.
func TestALateKeyIsItsOwnTurnsFault(t *testing.T) {
	set := masters.Start(t, 5)
	var problems []error
	r := &Runner{
		Masters: set, Turn: 20 * time.Millisecond, Progress: io.Discard,
		Problem: func(err error) { problems = append(problems, err) },
	}
	cell := Cells(regexp.MustCompile("^callers/c=1/n=5"))[0]
	cell.Subjects = []result.Subject{result.RedsyncFF}
	_, err := r.Round(t.Context(), []Cell{cell}, 0)
	require.NoError(t, err)
	require.NoError(t, set.Client(2).Set(t.Context(), load.Prefix(r.turns)+"0000:00004", 1, time.Hour).Err())
	cell.Subjects = []result.Subject{result.Redislock}
	_, err = r.Round(t.Context(), []Cell{cell}, 0)
	require.NoError(t, err)
	require.Empty(t, problems)

	spec, err := subject.Of(result.Redislock)
	require.NoError(t, err)
	spec.Guard = 10 * time.Millisecond // which makes it impatient
	require.NoError(t, set.Client(2).Set(t.Context(), load.Prefix(r.turns)+"0000:00004", 1, time.Hour).Err())
	require.ErrorIs(t, r.empty(t.Context(), cell, spec), masters.ErrLeft)
}

// Masters hang or refuse for one turn only. Keys that the turn leaves behind are deleted
// before the next.
func TestTurnsBesideFaultsLeaveNothing(t *testing.T) {
	set := masters.Start(t, 5)
	var progress bytes.Buffer
	r := &Runner{
		Masters: set, Turn: 20 * time.Millisecond, Cut: 10 * time.Second, Progress: &progress,
		Problem: func(err error) { t.Error(err) },
	}
	cells := Cells(regexp.MustCompile("^faults"))
	for i := range cells {
		cells[i].Subjects = []result.Subject{result.Quorumlock}
	}
	checked, err := r.Check(t.Context(), cells)
	require.NoError(t, err)
	assert.Equal(t, 1, checked)
	samples, err := r.Round(t.Context(), append(cells, cells[0]), 0)
	require.NoError(t, err)
	require.Len(t, samples, len(cells)+1)
	for _, s := range samples {
		assert.Positive(t, s.Cycles, "%+v", s.Cell)
		assert.Zero(t, s.Errors, "%+v: %s", s.Cell, progress.String())
		assert.Positive(t, s.Cycle.P99)
	}
}
