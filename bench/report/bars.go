package report

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// bar is one line of the table of headline figures.
type bar struct {
	what, against string
	aim           string // the goal of the library; empty if there is none
	measured      string
}

// bars returns the headline figures of a run, including those it did not measure.
func bars(m measured) []bar {
	var all []bar
	all = append(all, lonely(m)...)
	all = append(all, crowded(m)...)
	all = append(all, allocations(m)...)
	all = append(all, crippled(m)...)
	all = append(all, distant(m)...)
	all = append(all, guaranteed(m)...)
	return append(all, alive(m.run.Renewals)...)
}

const p50 = "p50 of acquire + release"

// lonely returns the costs for a single caller.
func lonely(m measured) []bar {
	five := callersCell(m, 1)
	nine := firstOr(m.where(func(c result.Cell) bool {
		return c.Scenario == result.Nodes && c.Nodes == 9 && c.Callers == 1
	}))
	return []bar{
		{"1 caller, " + p50, "redsync", "≤ 0.7×", versus(m, five, result.Redsync, cycleP50)},
		{"1 caller, " + p50, "floor", "≤ 1.2×", versus(m, five, result.Floor, cycleP50)},
		{"1 caller, 9 masters, " + p50, "floor at 9 masters", "≤ 1.3×",
			versus(m, nine, result.Floor, cycleP50)},
	}
}

// crowded returns the throughput of many callers.
func crowded(m measured) []bar {
	var all []bar
	for _, b := range []struct {
		callers int
		against result.Subject
		aim     string
	}{
		{16, result.Redsync, "≥ 5×"},
		{128, result.Redsync, "≥ 8×"},
		{1024, result.Redsync, "≥ 8×"},
		{128, result.Redislock, "≥ 1.2×"},
		{1024, result.Redislock, "≥ 1.4×"},
		{1024, result.Ceiling, "≥ 0.55×"},
	} {
		all = append(all, bar{
			what: counted(b.callers, "caller") + ", throughput", against: string(b.against),
			aim:      b.aim,
			measured: versus(m, callersCell(m, b.callers), b.against, throughput),
		})
	}
	return all
}

// allocations returns the heap objects that a cycle costs, for each library.
func allocations(m measured) []bar {
	var all []bar
	cell := callersCell(m, 128)
	for _, id := range identities {
		if !id.library || id.variant {
			continue
		}
		b := bar{what: "128 callers, allocations a cycle: " + string(id.subject)}
		if id.subject == result.Quorumlock {
			b.aim = "≤ 20"
		}
		b.measured = m.over(place{cell, id.subject}, allocs).text(figure, "")
		all = append(all, b)
	}
	return all
}

// crippled returns the figures when two of five masters hang.
func crippled(m measured) []bar {
	cells := m.where(func(c result.Cell) bool {
		return c.Scenario == result.Faults && c.Nodes == 5 && c.Hung == 2 && c.Refused == 0
	})
	if len(cells) == 0 {
		cells = append(cells, result.Cell{})
	}
	var all []bar
	for _, c := range cells {
		hung := place{c, result.Quorumlock}
		well := place{m.healthy(c), result.Quorumlock}
		what := "two of five masters hung"
		if c.Callers > 0 {
			what += ", " + counted(c.Callers, "caller")
		}
		all = append(all,
			bar{what + ", throughput", "itself, healthy", "≥ 0.8×", times(m.ratio(hung, well, throughput))},
			bar{what + ", p99", "itself, healthy", "≤ 2×", times(m.ratio(hung, well, cycleP99))})
	}
	return all
}

// distant returns the time of an acquisition over long links.
func distant(m measured) []bar {
	cells := m.where(func(c result.Cell) bool {
		return c.Scenario == result.Links && c.RTT == 10*time.Millisecond
	})
	if len(cells) == 0 {
		cells = append(cells, result.Cell{})
	}
	var all []bar
	for _, c := range cells {
		what := "links of 10 ms"
		if c.Callers > 0 {
			what += ", " + counted(c.Callers, "caller")
		}
		s := m.over(place{c, result.Quorumlock}, inRoundTrips(acquireP50))
		all = append(all, bar{what + ", p50 of acquire", "round trip", "≤ 1.1×", times(s)})
	}
	return all
}

// alive returns the cost of 100,000 locks that are only kept alive.
func alive(renewals []result.Renewal) []bar {
	var ours keeping
	for _, k := range kept(renewals) {
		if k.locks == 100_000 {
			ours = k
			break
		}
	}
	what := "100,000 live locks"
	if ours.ttl > 0 {
		what += ", ttl " + nanoseconds(float64(ours.ttl))
	}
	return []bar{
		{what + ", locks lost", "", "0", ours.lost.text(whole, "")},
		{what + ", client's processor cores", "", "≤ 0.5", ours.cores.text(figure, "")},
		{what + ", bytes a lock", "", "≤ 1,536", ours.perLock.text(whole, "")},
	}
}

// versus returns the metric of this library divided by that of another subject, as text.
func versus(m measured, c result.Cell, against result.Subject, of metric) string {
	return times(m.ratio(place{c, result.Quorumlock}, place{c, against}, of))
}

func times(s spread) string { return s.text(figure, "×") }
