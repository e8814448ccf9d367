package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/result"
)

// wanting is a sample in which an uncontended cycle takes 1 ms and the key is held for 4.
func wanting(n int, think time.Duration, perSecond float64) result.Sample {
	return result.Sample{
		Cell:    result.Cell{Scenario: result.Contended, Callers: n, Hold: 4 * time.Millisecond, Think: think},
		Subject: result.Quorumlock, Cycles: 10, PerSecond: perSecond,
		Contention: &result.Contention{
			Alone: time.Millisecond, Held: 4 * time.Millisecond, Gap: result.Latency{P50: 3 * time.Millisecond},
			Longest: 70 * time.Millisecond,
		},
	}
}

// One after the other, there are 200 a second at best. Two contenders that think for 35 ms
// want only 50.
func TestTheIdealIsNoMoreThanIsWanted(t *testing.T) {
	for _, c := range []struct {
		n         int
		think     time.Duration
		perSecond float64
		want      float64
	}{{4, 0, 100, 0.5}, {2, 35 * time.Millisecond, 40, 0.8}, {64, 35 * time.Millisecond, 100, 0.5}} {
		share, ok := ofIdeal(wanting(c.n, c.think, c.perSecond))
		require.True(t, ok)
		assert.InDelta(t, c.want, share, 1e-9, "%+v", c)
	}
	// Ten contenders, each of which takes 7 ms.
	turns, ok := longestByTurns(wanting(10, 0, 100))
	require.True(t, ok)
	assert.InDelta(t, 1, turns, 1e-9)
	ratio, ok := gapByAlone(wanting(10, 0, 100))
	require.True(t, ok)
	assert.InDelta(t, 3, ratio, 1e-9)
}

func TestWithoutContentionThereAreNoFigures(t *testing.T) {
	starved := wanting(4, 0, 0)
	starved.Cycles = 0
	for _, s := range []result.Sample{cycles(alone, result.Quorumlock, 0, 100), starved} {
		for _, of := range []metric{ofIdeal, gapP50, gapP99, gapByAlone, fairness, commands, longest, longestByTurns} {
			_, ok := of(s)
			assert.False(t, ok)
		}
	}
}

// Each goal has a line with its figures, or says that they were not measured.
func TestGoals(t *testing.T) {
	line := func(run result.Run, what string) string {
		for line := range strings.Lines(goalTable(measure(run)).markdown()) {
			if strings.HasPrefix(line, "| "+what) {
				return strings.TrimSpace(line)
			}
		}
		return ""
	}
	run := synthetic()
	assert.Contains(t, line(run, "16 contenders, held for 1 ms, p50 of the gap"), "| a cycle alone | 1.50× | 1.50× | ≤ 4× | ≤ 2.5× |")
	assert.Contains(t, line(run, "64 contenders, held for 5 ms, acquisitions"), "| 4 contenders | 1.00× | 1.00× | ≥ 0.95× |")
	assert.Contains(t, line(run, "64 contenders, held for 5 ms, commands"), "| 12.5 | 12.5 | ≤ 20 | ≤ 15 |")
	assert.Contains(t, line(run, "16 contenders, held for 5 ms, Jain"), "| 0.988 | 0.988 | ≥ 0.98 | ≥ 0.995 |")
	assert.Contains(t, line(run, "16 contenders, held for 5 ms, longest"), "| all turns | 3.00× | 3.00× | ≤ 2× | ≤ 1.3× |")
	assert.Contains(t, line(run, "4 contenders, links of 10 ms"), "| ≤ 2.5× | ≤ 2.1× |")
	assert.Contains(t, line(run, "1,000 callers of one client"), "| 12.5 | 12.5 | ≤ 20 | ≤ 10 |")
	assert.Contains(t, line(run, "1,000 waiters, each for a key of its own, of a"), "| 0.40 % |  | ≤ 1 % |")
	assert.Contains(t, line(run, "1,000 waiters, each for a key of its own, commands"), "| 0.050 |  | ≤ 0.1 |")
	for _, g := range goals(measure(result.Run{})) {
		assert.Equal(t, "not measured", g.measured, g.what)
	}
}

// Each way to want the key has a table, with a column for each number of contenders.
func TestContendedTables(t *testing.T) {
	page := written(t, synthetic())["benchmarks.md"]
	for _, title := range []string{
		"### Held for 5 ms, wanted again at once", "### Released at once, wanted again after 20 ms",
	} {
		assert.Contains(t, page, title+"\n\n| subject |  | 2 | 4 | 16 | 64 |\n")
	}
	assert.Contains(t, page, "|  | to somebody else | 75 % | 75 % | 75 % | 75 % |\n")
	assert.Contains(t, page, "| 16 processes, held for 5 ms, wanted again at once | quorumlock |")
	assert.Contains(t, page, "| 1,000 callers of one client, released at once, wanted again at once | quorumlock |")
	assert.Contains(t, page, "| 4 contenders, links of 10 ms, released at once, wanted again at once | quorumlock |")
	assert.Contains(t, page, "| 1,000 | 60.0 s | 3.00 s | 0.40 % | 0.050 |")
}

// The subjects of these plots are those that can wait.
func TestContendedPlots(t *testing.T) {
	files := written(t, synthetic())
	for _, file := range []string{"benchmarks-contended.svg", "benchmarks-commands.svg"} {
		for _, s := range []result.Subject{result.Quorumlock, result.Fair, result.Redsync, result.Rueidis} {
			assert.Contains(t, files[file], ">"+string(s)+"</text>", file)
		}
		assert.NotContains(t, files[file], ">"+string(result.Floor)+"</text>", file)
		assert.NotContains(t, files[file], ">not measured</text>", file)
	}
}
