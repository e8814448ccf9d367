package report

import (
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// goal is one line of the goals for waiting.
type goal struct {
	what, against   string
	measured, fair  string // by default, and with Fair
	aim, furtherAim string
}

// goals returns all goals, including those that a run did not measure.
func goals(m measured) []goal {
	at := func(n int, hold time.Duration) result.Cell {
		return firstOr(m.where(func(c result.Cell) bool {
			return isPlain(c) && c.Callers == n && c.Hold == hold && c.Think == 0
		}))
	}
	const long = 5 * time.Millisecond
	far := firstOr(m.where(func(c result.Cell) bool {
		return c.Scenario == result.Contended && c.RTT == 10*time.Millisecond
	}))
	together := firstOr(m.where(func(c result.Cell) bool {
		return c.Scenario == result.Contended && c.OneClient && c.Callers == 1000
	}))
	var all []goal
	add := func(what, against, aim, further string, text func(result.Subject) string) {
		all = append(all, goal{what, against, text(result.Quorumlock), text(result.Fair), aim, further})
	}
	in := func(c result.Cell, of func(measured, place) string) func(result.Subject) string {
		return func(s result.Subject) string { return of(m, place{c, s}) }
	}
	add("16 contenders, held for 1 ms, p50 of the gap", "a cycle alone", "≤ 4×", "≤ 2.5×",
		in(at(16, time.Millisecond), timesText(gapByAlone)))
	add("64 contenders, held for 5 ms, acquisitions a second", "4 contenders", "≥ 0.95×", "",
		func(s result.Subject) string {
			return times(m.ratio(place{at(64, long), s}, place{at(4, long), s}, throughput))
		})
	add("64 contenders, held for 5 ms, commands an acquisition", "", "≤ 20", "≤ 15",
		in(at(64, long), plainText(commands)))
	add("16 contenders, held for 5 ms, Jain index", "", "≥ 0.98", "≥ 0.995", in(at(16, long), fairnessText))
	add("64 contenders, held for 5 ms, Jain index", "", "≥ 0.98", "≥ 0.995", in(at(64, long), fairnessText))
	add("16 contenders, held for 5 ms, longest wait", "all turns", "≤ 2×", "≤ 1.3×",
		in(at(16, long), timesText(longestByTurns)))
	add("4 contenders, links of 10 ms, p50 of the gap", "round trip", "≤ 2.5×", "≤ 2.1×",
		in(far, timesText(inRoundTrips(gapP50))))
	add("1,000 callers of one client, commands an acquisition", "", "≤ 20", "≤ 10",
		in(together, plainText(commands)))

	var cores, rate []float64
	for _, w := range m.run.Idles {
		cores = append(cores, 100*w.Cores)
		rate = append(rate, w.PerSecond)
	}
	add("1,000 waiters, each for a key of its own, of a processor core", "", "≤ 1 %", "",
		onlyOurs(spreadOf(cores).text(figure, " %")))
	add("1,000 waiters, each for a key of its own, commands a second and waiter", "", "≤ 0.1", "",
		onlyOurs(spreadOf(rate).text(figure, "")))
	return all
}

// onlyOurs returns a figure that exists only for the library by default.
func onlyOurs(text string) func(result.Subject) string {
	return func(s result.Subject) string {
		if s != result.Quorumlock {
			return ""
		}
		return text
	}
}

// goalTable returns the table of goals.
func goalTable(m measured) grid {
	g := grid{head: []string{"what", "against", "by default", "fair", "aim", "further aim"}}
	for _, b := range goals(m) {
		g.rows = append(g.rows, []string{b.what, b.against, b.measured, b.fair, b.aim, b.furtherAim})
	}
	return g
}
