package main

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/masters"
)

func TestItRuns(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("there is no flock(1) on this machine")
	}
	set := masters.Start(t, nodes)
	var out bytes.Buffer
	require.NoError(t, compare(t.Context(), set, 2, &out))
	for _, name := range []string{nothing, locked, trips, started, quorate} {
		assert.Contains(t, out.String(), "\n"+name+" ")
	}
	assert.Contains(t, out.String(), "\n3 × flock + 5 round trips = ")
}

func TestEachTurnBeginsWithAnotherAndTheFirstIsNotCounted(t *testing.T) {
	var order string
	run := func(name string) *subject {
		return &subject{name: name, run: func() error { order += name; return nil }}
	}
	all := []*subject{run("a"), run("b"), run("c")}
	require.NoError(t, take(t.Context(), all, 3))
	assert.Equal(t, "abc"+"bca"+"cab"+"abc", order)
	for _, s := range all {
		assert.Len(t, s.took, 3)
	}
}

func TestWhatFailsIsNamed(t *testing.T) {
	gone := errors.New("gone")
	err := take(t.Context(), []*subject{{name: locked, run: func() error { return gone }}}, 1)
	require.ErrorIs(t, err, gone)
	assert.ErrorContains(t, err, locked)
	err = process("sh", "-c", "echo 'no such lock' >&2; exit 3")()
	assert.ErrorContains(t, err, "exit status 3: no such lock")
}

func TestTheBarIsThreeFlocksAndFiveRoundTrips(t *testing.T) {
	took := func(name string, ms ...int) *subject {
		s := &subject{name: name}
		for _, ms := range ms {
			s.took = append(s.took, time.Duration(ms)*time.Millisecond)
		}
		return s
	}
	var out bytes.Buffer
	require.NoError(t, report(&out, []*subject{
		took(locked, 9, 1, 2), took(trips, 1, 1, 1), took(quorate, 5, 90, 6), took(withC, 7, 7, 7),
	}))
	assert.Contains(t, out.String(), "3 × flock + 5 round trips = 7.00 ms\n")
	assert.Contains(t, out.String(), "redlock run KEY -- true: 6.00 ms, below it\n")
	assert.Contains(t, out.String(), "redlock run KEY -- true, with cgo: 7.00 ms, NOT below it\n")
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len([]rune(line)), 81, line)
	}
}
