package contend

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/bench/result"
)

var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// at returns the time that is ms milliseconds after midnight.
func at(ms int) time.Time { return midnight.Add(time.Duration(ms) * time.Millisecond) }

// got is an acquisition, with its times in milliseconds.
func got(called, acquired, releasing int) Span { return Span{at(called), at(acquired), at(releasing)} }

func TestJain(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   float64
	}{
		{[]int{7, 7, 7, 7}, 1},
		{[]int{0, 0, 0, 9}, 0.25},
		{[]int{1, 3}, 0.8},
		{[]int{2, 4, 6}, 144. / 168},
		{[]int{5}, 1},
		{[]int{0, 0}, 0},
		{nil, 0},
	} {
		assert.InDelta(t, c.want, Jain(c.counts), 1e-12, "%v", c.counts)
	}
}

func TestQuantilesAreNearestRanks(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(i+1))
	}
	assert.EqualValues(t, 1, Quantile(d, 0))
	assert.EqualValues(t, 101, Quantile(d, 0.5))
	assert.EqualValues(t, 199, Quantile(d, 0.99))
	assert.EqualValues(t, 200, Quantile(d, 1))
	assert.EqualValues(t, 7, Quantile([]time.Duration{7}, 0.99))
	assert.Zero(t, Quantile(nil, 0.5))
	assert.Equal(t, result.Latency{P50: 3, P90: 4, P99: 4, P999: 4, Max: 4}, latency([]time.Duration{4, 1, 3, 2}))
}

// There are two contenders, and the window is from 100 to 200. Acquisitions before or after it
// do not count.
func TestSumOfATurn(t *testing.T) {
	logs := []Log{
		{Spans: []Span{got(0, 90, 95), got(95, 110, 120), got(120, 140, 150)}},
		{Spans: []Span{got(0, 100, 105), got(105, 125, 135), got(135, 205, 210)}, Twice: 2, Errors: 1, Why: "why"},
	}
	o := Sum(logs, at(100), at(200))
	assert.Equal(t, 4, o.Acquisitions)
	assert.InDelta(t, 40, o.PerSecond, 1e-9)
	assert.Equal(t, 2, o.Twice)
	assert.Equal(t, 1, o.Errors)
	assert.EqualError(t, o.Err, "why")
	assert.Equal(t, 8750*time.Microsecond, o.Held) // of 10, 10, 5 and 10
	assert.InDelta(t, 1, o.Jain, 1e-12)
	// Gaps of 5 each. The gap from 150 to 205 is after the window.
	assert.Equal(t, 5*time.Millisecond, o.Gap.P50)
	assert.Equal(t, 5*time.Millisecond, o.Gap.Max)
	assert.InDelta(t, 1, o.Passed, 1e-9)
	// Waits of 15, 20, 100 and 20; one contender has still waited 65 at the end.
	assert.Equal(t, 20*time.Millisecond, o.Wait.P50)
	assert.Equal(t, 100*time.Millisecond, o.Wait.Max)
}

// If no contender wanted the lock between two holders, there is no gap.
func TestAGapNeedsSomebodyWhoWaits(t *testing.T) {
	logs := []Log{
		{Spans: []Span{got(0, 10, 20), got(60, 62, 65)}},
		{Spans: []Span{got(64, 71, 80)}},
	}
	assert.Equal(t, []handover{{at(71), 6 * time.Millisecond, true}}, handovers(logs))
	// A gap counts whichever waiter is served, and even if a waiter never is.
	logs[1].Spans = append([]Span{{Called: at(15)}}, logs[1].Spans...)
	assert.Equal(t, []handover{{at(62), 42 * time.Millisecond, false}, {at(71), 6 * time.Millisecond, true}}, handovers(logs))
}

// A contender that is never served has waited too.
func TestTheStarvedCount(t *testing.T) {
	logs := []Log{
		{Spans: []Span{got(0, 100, 110), got(110, 112, 120)}},
		{Spans: []Span{{Called: at(50)}}},
	}
	o := Sum(logs, at(100), at(200))
	assert.Equal(t, 150*time.Millisecond, o.Wait.Max)
	assert.InDelta(t, 0.5, o.Jain, 1e-12)
	assert.Equal(t, 150*time.Millisecond, o.Sample(result.Cell{}, result.Redsync, 0).Contention.Longest)
}

func TestSumOfNothing(t *testing.T) {
	o := Sum(make([]Log, 3), at(0), at(10))
	assert.Zero(t, *o)
	assert.Equal(t, &result.Contention{}, o.Sample(result.Cell{}, result.Redsync, 0).Contention)
}
