package contend

import (
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// Outcome holds the figures of a turn.
type Outcome struct {
	Acquisitions int // in the window
	Errors       int // in the whole turn
	Err          error
	Twice        int // acquisitions in the whole turn during which there was another holder

	PerSecond float64 // acquisitions
	Alone     time.Duration
	Held      time.Duration  // mean; it is longer than Turn.Hold, because timers are late
	Gap       result.Latency // from the call of Release to the return of Acquire at the next holder
	Passed    float64        // share of these gaps after which the next holder was another contender
	Wait      result.Latency // from the call of Acquire to its return
	Jain      float64        // of the acquisitions of all contenders
	Commands  int64          // sent in the window
}

// Sum computes the outcome from the contenders' logs. An acquisition belongs to the window if
// Acquire returned in it.
//
// A gap counts only if a contender waited when Release was called; otherwise it would measure
// how long no contender wanted the lock. A contender that still waits at the end of the window
// has waited until then. That counts for the longest wait and for nothing else.
func Sum(logs []Log, begin, end time.Time) *Outcome {
	o := new(Outcome)
	var held time.Duration
	var gaps, waits []time.Duration
	var starved time.Duration
	counts := make([]int, len(logs))
	for i, log := range logs {
		o.Errors += log.Errors
		o.Twice += log.Twice
		if log.Why != "" {
			o.Err = errors.New(log.Why)
		}
		for _, s := range log.Spans {
			switch {
			case s.Acquired.IsZero() || s.Acquired.After(end):
				starved = max(starved, end.Sub(s.Called))
			case !s.Acquired.Before(begin):
				counts[i]++
				held += s.Releasing.Sub(s.Acquired)
				waits = append(waits, s.Acquired.Sub(s.Called))
			}
		}
		o.Acquisitions += counts[i]
	}
	passed := 0
	for _, g := range handovers(logs) {
		if g.acquired.Before(begin) || g.acquired.After(end) {
			continue
		}
		gaps = append(gaps, g.took)
		if g.passed {
			passed++
		}
	}
	if len(gaps) > 0 {
		o.Passed = float64(passed) / float64(len(gaps))
	}
	o.Gap, o.Wait = latency(gaps), latency(waits)
	o.Wait.Max = max(o.Wait.Max, starved)
	o.Jain = Jain(counts)
	o.PerSecond = float64(o.Acquisitions) / end.Sub(begin).Seconds()
	if o.Acquisitions > 0 {
		o.Held = held / time.Duration(o.Acquisitions)
	}
	return o
}

// handover is the passing of a lock from one holder to the next.
type handover struct {
	acquired time.Time
	took     time.Duration
	passed   bool // the next holder is another contender
}

// handovers returns the handovers for which a contender waited.
func handovers(logs []Log) (all []handover) {
	type holding struct {
		Span
		by int
	}
	var held []holding
	var called, acquired []time.Time
	for i, log := range logs {
		for _, s := range log.Spans {
			called = append(called, s.Called)
			if !s.Acquired.IsZero() {
				acquired = append(acquired, s.Acquired)
				held = append(held, holding{s, i})
			}
		}
	}
	slices.SortFunc(called, time.Time.Compare)
	slices.SortFunc(acquired, time.Time.Compare)
	slices.SortFunc(held, func(a, b holding) int { return a.Acquired.Compare(b.Acquired) })
	until := func(sorted []time.Time, t time.Time) int {
		return sort.Search(len(sorted), func(i int) bool { return sorted[i].After(t) })
	}
	for i := 1; i < len(held); i++ {
		from, to := held[i-1].Releasing, held[i].Acquired
		if until(called, from) > until(acquired, from) {
			all = append(all, handover{to, max(to.Sub(from), 0), held[i].by != held[i-1].by})
		}
	}
	return all
}

// Jain returns the fairness index of Jain, Chiu and Hawe: 1 if all counts are equal, and 1/n
// if one of n has everything.
func Jain(counts []int) float64 {
	var sum, squares float64
	for _, n := range counts {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// latency returns the distribution of some durations, which it sorts.
func latency(d []time.Duration) result.Latency {
	if len(d) == 0 {
		return result.Latency{}
	}
	slices.Sort(d)
	return result.Latency{
		P50: Quantile(d, 0.5), P90: Quantile(d, 0.9), P99: Quantile(d, 0.99),
		P999: Quantile(d, 0.999), Max: d[len(d)-1],
	}
}

// Quantile returns the value that the share q of the sorted durations do not exceed (the
// nearest rank).
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
