package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/result"
)

// Compares quantiles with those of the sorted values, over all magnitudes.
func TestQuantilesAreWithinOnePercent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h, half Histogram
	values := make([]time.Duration, 20_000)
	for i := range values {
		values[i] = time.Duration(1) << r.IntN(36)
		values[i] += time.Duration(r.Int64N(int64(values[i])))
		if i%2 == 0 {
			h.Record(values[i])
		} else {
			half.Record(values[i])
		}
	}
	h.Add(&half)
	slices.Sort(values)
	l := h.Latency()
	require.Len(t, l.Quantiles, 101)
	at := func(q float64) float64 { return float64(values[min(int(q*20_000), 19_999)]) }
	for p, got := range l.Quantiles {
		assert.InEpsilon(t, at(float64(p)/100), float64(got), 0.01, "%d %%", p)
	}
	assert.InEpsilon(t, at(0.5), float64(l.P50), 0.01)
	assert.InEpsilon(t, at(0.9), float64(l.P90), 0.01)
	assert.InEpsilon(t, at(0.99), float64(l.P99), 0.01)
	assert.InEpsilon(t, at(0.999), float64(l.P999), 0.01)
	assert.Equal(t, values[len(values)-1], l.Max)
	assert.True(t, slices.IsSorted(l.Quantiles))
}

func TestBucketsFollowEachOther(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 1<<12; d++ {
		b := bucket(d)
		require.Contains(t, []int{last, last + 1}, b, "%d ns", d)
		last = b
		require.InDelta(t, float64(d), float64(middle(b)), 0.01*float64(d), "%d ns", d)
	}
}

func TestExtremesStayInTheHistogram(t *testing.T) {
	var h Histogram
	assert.Equal(t, result.Latency{}, h.Latency())
	h.Record(time.Hour)
	h.Record(-1)
	l := h.Latency()
	assert.Equal(t, time.Hour, l.Max)
	assert.Zero(t, l.Quantiles[0])
	assert.Equal(t, time.Hour, l.Quantiles[100])
}
