package report

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// contention takes a figure from a sample of callers that want one key. There is none if no
// caller got the key.
func contention(of func(result.Sample, result.Contention) (float64, bool)) metric {
	return func(s result.Sample) (float64, bool) {
		if s.Contention == nil || s.Cycles == 0 {
			return 0, false
		}
		return of(s, *s.Contention)
	}
}

// some returns a duration in nanoseconds, if it is positive.
func some(d time.Duration) (float64, bool) { return float64(d), d > 0 }

var (
	// ofIdeal is the acquisitions divided by those of an ideal lock, which hands the key over
	// in the time of an uncontended cycle, but no more often than contenders that think in
	// between want it.
	ofIdeal = contention(func(s result.Sample, c result.Contention) (float64, bool) {
		one := (c.Held + c.Alone).Seconds()
		ideal := min(1/one, float64(s.Callers)/(s.Think.Seconds()+one))
		return s.PerSecond / ideal, c.Alone > 0
	})

	gapP50  = contention(func(_ result.Sample, c result.Contention) (float64, bool) { return some(c.Gap.P50) })
	gapP99  = contention(func(_ result.Sample, c result.Contention) (float64, bool) { return some(c.Gap.P99) })
	longest = contention(func(_ result.Sample, c result.Contention) (float64, bool) { return some(c.Longest) })

	// gapByAlone is the median gap divided by the uncontended cycle of the same subject in the
	// same turn; gapP99ByAlone is the same for the 99th percentile.
	gapByAlone    = byAlone(gapP50)
	gapP99ByAlone = byAlone(gapP99)

	passed = contention(func(_ result.Sample, c result.Contention) (float64, bool) {
		return 100 * c.Passed, c.Gap.P50 > 0
	})
	fairness = contention(func(_ result.Sample, c result.Contention) (float64, bool) { return c.Jain, c.Jain > 0 })
	commands = contention(func(_ result.Sample, c result.Contention) (float64, bool) { return c.Commands, c.Commands > 0 })

	// longestByTurns is the longest wait divided by the time of one turn of every contender,
	// all of which may be in front.
	longestByTurns = contention(func(s result.Sample, c result.Contention) (float64, bool) {
		turns := float64(s.Callers) * float64(c.Held+c.Gap.P50)
		return float64(c.Longest) / turns, c.Gap.P50 > 0
	})
)

func byAlone(of metric) metric {
	return func(s result.Sample) (float64, bool) {
		ns, ok := of(s)
		if !ok || s.Contention.Alone <= 0 {
			return 0, false
		}
		return ns / float64(s.Contention.Alone), true
	}
}
