package report

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// throughput is cycles a second. A turn in which nothing succeeded has a throughput of zero.
func throughput(s result.Sample) (float64, bool) {
	if s.Cycles == 0 {
		return 0, true
	}
	return s.PerSecond, true
}

// allocs is heap objects for each cycle.
func allocs(s result.Sample) (float64, bool) {
	return s.Allocs, s.Cycles > 0 && s.Allocs > 0
}

func cycleP50(s result.Sample) (float64, bool)   { return latency(s, s.Cycle.P50) }
func cycleP99(s result.Sample) (float64, bool)   { return latency(s, s.Cycle.P99) }
func acquireP50(s result.Sample) (float64, bool) { return latency(s, s.Acquire.P50) }
func acquireP99(s result.Sample) (float64, bool) { return latency(s, s.Acquire.P99) }

// latency returns a latency of a sample in nanoseconds, if anything succeeded.
func latency(s result.Sample, d time.Duration) (float64, bool) {
	return float64(d), s.Cycles > 0 && d > 0
}

// inRoundTrips is a latency divided by the round trip of the sample's links.
func inRoundTrips(of metric) metric {
	return func(s result.Sample) (float64, bool) {
		ns, ok := of(s)
		if !ok || s.RTT <= 0 {
			return 0, false
		}
		return ns / float64(s.RTT), true
	}
}
