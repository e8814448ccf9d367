package load

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

const (
	// subBuckets is the number of buckets in each octave. The width of a bucket is at most
	// 1/64 of its values, and its middle differs from them by at most 0.8 %.
	subBits    = 6
	subBuckets = 1 << subBits
	// octaves reach to 2^37 ns, over two minutes. A longer duration counts as that.
	octaves = 37 - subBits
)

// Histogram counts durations in buckets that grow with them. It has a fixed size and no
// pointers, so that recording neither allocates nor makes work for the garbage collector.
// Goroutines may share one.
type Histogram struct {
	counts [(octaves + 1) * subBuckets]atomic.Uint32
	max    atomic.Int64 // exact, in nanoseconds
}

// Record counts one duration.
func (h *Histogram) Record(d time.Duration) {
	h.counts[bucket(d)].Add(1)
	for {
		m := h.max.Load()
		if int64(d) <= m || h.max.CompareAndSwap(m, int64(d)) {
			return
		}
	}
}

// Add adds the counts of other.
func (h *Histogram) Add(other *Histogram) {
	for i := range other.counts {
		h.counts[i].Add(other.counts[i].Load())
	}
	h.max.Store(max(h.max.Load(), other.max.Load()))
}

// Latency returns the distribution, which is all zero if nothing was recorded. Max is exact,
// and no quantile exceeds it.
func (h *Histogram) Latency() result.Latency {
	total := uint64(0)
	for i := range h.counts {
		total += uint64(h.counts[i].Load())
	}
	if total == 0 {
		return result.Latency{}
	}
	l := result.Latency{
		P50:  h.quantile(total, 0.5),
		P90:  h.quantile(total, 0.9),
		P99:  h.quantile(total, 0.99),
		P999: h.quantile(total, 0.999),
		Max:  time.Duration(h.max.Load()),
	}
	for p := range 101 {
		l.Quantiles = append(l.Quantiles, h.quantile(total, float64(p)/100))
	}
	return l
}

// quantile returns the middle of the bucket with the value that the share q of all durations
// do not exceed (the nearest rank).
func (h *Histogram) quantile(total uint64, q float64) time.Duration {
	longest := time.Duration(h.max.Load())
	rank := min(uint64(q*float64(total)), total-1) // of the sorted values, from 0
	if q == 1 {
		return longest
	}
	seen := uint64(0)
	for i := range h.counts {
		if seen += uint64(h.counts[i].Load()); seen > rank {
			return min(middle(i), longest)
		}
	}
	return longest
}

// bucket returns the number of a duration's bucket: one for each duration below 64 ns, and
// then 64 to an octave.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	octave := max(bits.Len64(v)-subBits-1, 0)
	if octave >= octaves {
		return (octaves+1)*subBuckets - 1
	}
	return octave*subBuckets + int(v>>octave)
}

// middle returns the middle of a bucket.
func middle(i int) time.Duration {
	octave := max(i/subBuckets-1, 0)
	low := uint64(i-octave*subBuckets) << octave
	return time.Duration(low + (uint64(1)<<octave)/2)
}
