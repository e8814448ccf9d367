package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/result"
)

// Every subject in a plot has its own colour, and a plot has no other subjects.
func TestSubjectsKeepTheirColours(t *testing.T) {
	all := []result.Subject{
		result.Quorumlock, result.Redsync, result.RedsyncFF, result.Redislock,
		result.Rueidis, result.Floor, result.Ceiling,
	}
	drawn := slices.DeleteFunc(slices.Clone(identities), func(id identity) bool { return id.variant })
	require.Len(t, drawn, len(all))
	files := written(t, synthetic())
	for file, in := range map[string][]result.Subject{
		"benchmarks-latency.svg": all,
		"benchmarks-callers.svg": all,
		"benchmarks-nodes.svg":   {result.Quorumlock, result.Redsync, result.RedsyncFF, result.Floor},
		"benchmarks-faults.svg":  {result.Quorumlock, result.Redsync, result.RedsyncFF},
	} {
		for _, id := range drawn {
			c := id.colour
			colour := fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)
			legend := ">" + string(id.subject) + "</text>"
			expected := false
			for _, s := range in {
				expected = expected || s == id.subject
			}
			assert.Equal(t, expected, strings.Contains(files[file], colour), "%s: %s", file, id.subject)
			assert.Equal(t, expected, strings.Contains(files[file], legend), "%s: %s", file, id.subject)
		}
	}
}

// The text is dark, so a dark page must not show through.
func TestPlotsAreOnWhite(t *testing.T) {
	files := written(t, synthetic())
	for _, p := range plots {
		svg := files[p.file]
		first := regexp.MustCompile(`<path [^>]*>`).FindString(svg)
		assert.Contains(t, first, "M0,0L0,345L600,345L600,0Z", p.file)
		assert.Contains(t, first, "fill:#FFFFFF", p.file)
		assert.NotContains(t, svg, "Sans;", "a font of its kind stands in for it")
	}
}

// Without the whole distribution, the few stored percentiles are drawn.
func TestLatencyWithoutQuantiles(t *testing.T) {
	s := made(alone, result.Quorumlock, 0, 100, 10_000)
	whole := written(t, result.Run{Samples: []result.Sample{s}})["benchmarks-latency.svg"]
	s.Acquire.Quantiles = nil
	few := written(t, result.Run{Samples: []result.Sample{s}})["benchmarks-latency.svg"]
	assert.Greater(t, strings.Count(whole, "L"), 100)
	assert.Less(t, strings.Count(few, "L"), 100)
	assert.Contains(t, few, ">quorumlock</text>")
}

// A plot shows the figures that there are, even if others are missing.
func TestPlotsOfLittle(t *testing.T) {
	for _, c := range []result.Cell{
		{Scenario: result.Callers, Callers: 1, Nodes: 5},
		{Scenario: result.Callers, Callers: 128, Nodes: 5},
		{Scenario: result.Nodes, Callers: 1, Nodes: 5},
		{Scenario: result.Faults, Callers: 16, Nodes: 5, Hung: 2},
		{Scenario: result.Links, Callers: 1, Nodes: 5},
	} {
		proper(t, written(t, result.Run{Samples: []result.Sample{cycles(c, result.Quorumlock, 0, 100)}}))
	}
}

func TestTicks(t *testing.T) {
	labels := func(a axis) string {
		var some []string
		for _, tick := range a.ticks {
			if tick.Label != "" {
				some = append(some, tick.Label)
			}
		}
		return strings.Join(some, " ")
	}
	assert.Equal(t, "1k 2k 5k 10k 20k", labels(logarithmic(extent{900, 30_000, true}, short)))
	assert.Equal(t, "1 10 100 1k 10k 100k 1M", labels(logarithmic(extent{1, 1e6, true}, short)))
	assert.Equal(t, "100 µs 1 ms 10 ms 100 ms 1 s", labels(logarithmic(extent{5e4, 2e9, true}, nanoseconds)))
	assert.Equal(t, "0 100 µs 200 µs 300 µs 400 µs 500 µs 600 µs 700 µs",
		labels(fromZero(700_000, nanoseconds)))
	assert.Equal(t, "0 200 µs 400 µs 600 µs 800 µs 1 ms 1.20 ms", labels(fromZero(1.2e6, nanoseconds)))
}
