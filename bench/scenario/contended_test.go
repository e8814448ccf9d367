package scenario

import (
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// A turn is long enough for eight acquisitions by each contender, except with a thousand.
func TestManyContendersHaveLongerTurns(t *testing.T) {
	of := func(n int, hold time.Duration) time.Duration {
		c := contended(n)
		c.Hold = hold
		return contention(900*time.Millisecond, c)
	}
	assert.Equal(t, 900*time.Millisecond, of(4, 5*time.Millisecond))
	assert.GreaterOrEqual(t, of(64, 5*time.Millisecond), 64*8*6*time.Millisecond)
	together := contended(1000)
	together.OneClient = true
	assert.Equal(t, 900*time.Millisecond, contention(900*time.Millisecond, together))
}

// All subjects that can wait are compared where contenders hold the key for 5 ms and want it
// again at once.
func TestEverybodyWhoCanWaitContends(t *testing.T) {
	cells := Cells(regexp.MustCompile("^contended/c=16/n=5/hold=5ms/think=0s$"))
	require.Len(t, cells, 1)
	assert.ElementsMatch(t, subject.Waiting(), cells[0].Subjects)
	assert.Contains(t, cells[0].Subjects, result.Redsync)
	assert.NotContains(t, cells[0].Subjects, result.Floor)
}

func TestContendedTurnsAreMeasured(t *testing.T) {
	subject.Quiet()
	set := masters.Start(t, 5)
	r := &Runner{
		Masters: set, Turn: 20 * time.Millisecond, Progress: io.Discard,
		Problem: func(err error) { t.Error(err) },
	}
	cells := Cells(regexp.MustCompile("^contended/c=4/n=5/hold=5ms/think=0s$"))
	require.Len(t, cells, 1)
	samples, err := r.Round(t.Context(), cells, 0)
	require.NoError(t, err)
	require.Len(t, samples, len(subject.Waiting()))
	for _, s := range samples {
		assert.Positive(t, s.Cycles, s.Subject)
		assert.Zero(t, s.Errors, s.Subject)
		require.NotNil(t, s.Contention, s.Subject)
		assert.GreaterOrEqual(t, s.Contention.Held, 5*time.Millisecond, s.Subject)
		assert.Positive(t, s.Contention.Alone, s.Subject)
		assert.Positive(t, s.Contention.Gap.P50, s.Subject)
		assert.Positive(t, s.Contention.Commands, s.Subject)
	}
	require.NoError(t, set.AwaitEmpty(t.Context(), 0))
}
