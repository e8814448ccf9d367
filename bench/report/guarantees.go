package report

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// guaranteed returns the costs of the guarantees that are off by default.
func guaranteed(m measured) []bar {
	at := func(callers int, rtt time.Duration) result.Cell {
		return firstOr(m.where(func(c result.Cell) bool {
			return c.Scenario == result.Guarantees && c.Callers == callers && c.RTT == rtt
		}))
	}
	against := func(callers int, s result.Subject, of metric) string {
		here := place{at(callers, 0), s}
		return times(m.ratio(here, plain(here), of))
	}
	far := func(callers int) string {
		here := place{at(callers, 10*time.Millisecond), result.Fenced}
		return times(m.over(here, inRoundTrips(acquireP50)))
	}
	const itself = "itself, without"
	return []bar{
		{"fencing, 1 caller, " + p50, itself, "", against(1, result.Fenced, cycleP50)},
		{"restart guard, 1 caller, " + p50, itself, "", against(1, result.Guarded, cycleP50)},
		{"both, 1 caller, " + p50, itself, "", against(1, result.Both, cycleP50)},
		{"fencing, 128 callers, throughput", itself, "≥ 0.5×", against(128, result.Fenced, throughput)},
		{"restart guard, 128 callers, throughput", itself, "≥ 0.97×", against(128, result.Guarded, throughput)},
		{"both, 128 callers, throughput", itself, "", against(128, result.Both, throughput)},
		{"fencing, links of 10 ms, 1 caller, p50 of acquire", "round trip", "≤ 1.15×", far(1)},
		{"fencing, links of 10 ms, 16 callers, p50 of acquire", "round trip", "", far(16)},
	}
}

// plain returns the place of this library with its defaults in the same cell.
func plain(p place) place { return place{p.cell, result.Quorumlock} }
