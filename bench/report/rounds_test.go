package report

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/result"
)

var alone = result.Cell{Scenario: result.Callers, Callers: 1, Nodes: 5}

// cycles is a sample whose median cycle took us microseconds.
func cycles(c result.Cell, s result.Subject, round, us int) result.Sample {
	return result.Sample{
		Cell: c, Subject: s, Round: round, Cycles: 1000, PerSecond: 1e6 / float64(us),
		Cycle: result.Latency{P50: time.Duration(us) * time.Microsecond},
	}
}

// The machine slows down threefold during the run. The ratios are 2, 1 and 4, with a median of
// 2, whereas the ratio of the medians is 40 / 10 = 4.
func TestRatiosAreTakenWithinRounds(t *testing.T) {
	run := result.Run{Samples: []result.Sample{
		cycles(alone, result.Quorumlock, 1, 10), cycles(alone, result.Redsync, 1, 5),
		cycles(alone, result.Quorumlock, 2, 100), cycles(alone, result.Redsync, 2, 100),
		cycles(alone, result.Quorumlock, 3, 40), cycles(alone, result.Redsync, 3, 10),
	}}
	m := measure(run)
	ours, theirs := place{alone, result.Quorumlock}, place{alone, result.Redsync}
	require.Equal(t, 4.0, m.over(ours, cycleP50).median/m.over(theirs, cycleP50).median)
	assert.Equal(t, spread{median: 2, min: 1, max: 4, n: 3, of: 3}, m.ratio(ours, theirs, cycleP50))
	assert.Contains(t, written(t, run)["benchmarks.md"],
		"| 1 caller, p50 of acquire + release | redsync | 2.00× (1.00–4.00) | ≤ 0.7× |")
}

// Rounds 2 and 4 lack one of the two. In round 3 nothing succeeded, which is reported.
func TestRatiosNeedBothInARound(t *testing.T) {
	m := measure(result.Run{Samples: []result.Sample{
		cycles(alone, result.Quorumlock, 1, 30), cycles(alone, result.Redsync, 1, 10),
		cycles(alone, result.Quorumlock, 2, 500),
		cycles(alone, result.Quorumlock, 3, 30), {Cell: alone, Subject: result.Redsync, Round: 3, Errors: 1},
		cycles(alone, result.Redsync, 4, 1),
	}})
	s := m.ratio(place{alone, result.Quorumlock}, place{alone, result.Redsync}, cycleP50)
	assert.Equal(t, spread{median: 3, min: 3, max: 3, n: 1, of: 2}, s)
	assert.Equal(t, "3.00× (3.00–3.00, 1 of 2 rounds)", times(s))
}

func TestHealthyIsTheSameCellUnbroken(t *testing.T) {
	hung := result.Cell{Scenario: result.Faults, Callers: 128, Nodes: 5, Hung: 2}
	well := result.Cell{Scenario: result.Faults, Callers: 128, Nodes: 5}
	crowd := result.Cell{Scenario: result.Callers, Callers: 128, Nodes: 5}
	samples := []result.Sample{
		cycles(hung, result.Quorumlock, 1, 50), cycles(well, result.Quorumlock, 1, 40),
		cycles(hung, result.Quorumlock, 2, 100), cycles(well, result.Quorumlock, 2, 50),
		cycles(crowd, result.Quorumlock, 1, 5), cycles(crowd, result.Quorumlock, 2, 10),
	}
	line := func(samples []result.Sample) string {
		for _, b := range bars(measure(result.Run{Samples: samples})) {
			if b.what == "two of five masters hung, 128 callers, throughput" {
				return b.measured
			}
		}
		return ""
	}
	assert.Equal(t, "0.65× (0.50–0.80)", line(samples))

	// Without a healthy cell among the faults, it is the cell with as many callers.
	samples = slices.DeleteFunc(samples, func(s result.Sample) bool { return s.Cell == well })
	assert.Equal(t, "0.10×", line(samples))
}

func TestMissingSubjectsAreNotMeasured(t *testing.T) {
	run := synthetic()
	run.Samples = slices.DeleteFunc(run.Samples, func(s result.Sample) bool {
		return s.Subject == result.Redsync && s.Callers == 16 || s.Subject == result.Ceiling
	})
	page := written(t, run)["benchmarks.md"]
	assert.Contains(t, page, "| 16 callers, throughput | redsync | not measured | ≥ 5× |")
	assert.Contains(t, page, "|  | redsync | not measured |  |  |  |  |\n")
	assert.NotContains(t, page, "|  | ceiling |", "a bound is missed only in the headlines")
	assert.NotRegexp(t, `\|  \| floor \| not measured`, page, "the floor has one caller")
}

func TestLaterSampleOfARoundCounts(t *testing.T) {
	m := measure(result.Run{Samples: []result.Sample{
		cycles(alone, result.Quorumlock, 1, 10), cycles(alone, result.Quorumlock, 1, 20),
	}})
	assert.Equal(t, 20_000.0, m.over(place{alone, result.Quorumlock}, cycleP50).median)
}
