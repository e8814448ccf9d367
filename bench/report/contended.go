package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// wanted is how contenders with their own clients want a key. Each has a table, and a line in
// a plot.
type wanted struct{ hold, think time.Duration }

// what describes it in words.
func (w wanted) what() string {
	held := "held for " + nanoseconds(float64(w.hold))
	if w.hold == 0 {
		held = "released at once"
	}
	if w.think == 0 {
		return held + ", wanted again at once"
	}
	return held + ", wanted again after " + nanoseconds(float64(w.think))
}

// isPlain reports whether contenders are in one process, near the masters, each with its own
// client.
func isPlain(c result.Cell) bool {
	return c.Scenario == result.Contended && !c.OneClient && !c.Processes && c.RTT == 0
}

// cellsOf returns the plain cells, by the number of contenders.
func (w wanted) cellsOf(m measured) []result.Cell {
	return m.where(func(c result.Cell) bool {
		return isPlain(c) && c.Hold == w.hold && c.Think == w.think
	})
}

// ways returns the ways that were measured: first those without thinking, and among these the
// longest hold first.
func ways(m measured) (all []wanted) {
	for _, c := range m.where(isPlain) {
		if w := (wanted{c.Hold, c.Think}); !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b wanted) int {
		return cmp.Or(cmp.Compare(a.think, b.think), cmp.Compare(b.hold, a.hold))
	})
	return all
}

// contendedRows are the figures of a subject in a table with a column for each number of
// contenders.
var contendedRows = []column{
	{"acquisitions a second", plainText(throughput)},
	{"of the ideal", plainText(ofIdeal)},
	{"gap p50", timeText(gapP50)},
	{"gap p50 / alone", timesText(gapByAlone)},
	{"gap p99", timeText(gapP99)},
	{"gap p99 / alone", timesText(gapP99ByAlone)},
	{"to somebody else", func(m measured, p place) string { return m.over(p, passed).text(whole, " %") }},
	{"Jain index", fairnessText},
	{"longest wait", timeText(longest)},
	{"longest wait / all turns", timesText(longestByTurns)},
	{"commands an acquisition", plainText(commands)},
	failedColumn(),
}

func plainText(of metric) func(measured, place) string {
	return func(m measured, p place) string { return m.over(p, of).text(figure, "") }
}

func timeText(of metric) func(measured, place) string {
	return func(m measured, p place) string { return durations(m.over(p, of)) }
}

func timesText(of metric) func(measured, place) string {
	return func(m measured, p place) string { return times(m.over(p, of)) }
}

// fairnessText has one digit more than other figures, because the values that matter are near
// 1.
func fairnessText(m measured, p place) string { return m.over(p, fairness).text(thousandths, "") }

// byContenders returns the table of one way to want the key.
func byContenders(m measured, w wanted) grid {
	cells := w.cellsOf(m)
	g := grid{head: []string{"subject", ""}}
	for _, c := range cells {
		g.head = append(g.head, whole(float64(c.Callers)))
	}
	for _, id := range identities {
		if !slices.ContainsFunc(cells, func(c result.Cell) bool { return len(m.at[place{c, id.subject}]) > 0 }) {
			continue
		}
		label := string(id.subject)
		for _, r := range contendedRows {
			row := []string{label, r.head}
			label = ""
			for _, c := range cells {
				row = append(row, r.text(m, place{c, id.subject}))
			}
			g.rows = append(g.rows, row)
		}
	}
	return g
}

// otherWays returns the table of contenders that are distant, in separate processes, or in one
// client.
func otherWays(m measured) grid {
	g := grid{head: []string{"contenders", "subject"}}
	rows := append(slices.Clone(contendedRows), column{"gap p50 in round trips", func(m measured, p place) string {
		if p.cell.RTT == 0 {
			return ""
		}
		return plainText(inRoundTrips(gapP50))(m, p)
	}})
	for _, r := range rows {
		g.head = append(g.head, r.head)
	}
	cells := m.where(func(c result.Cell) bool { return c.Scenario == result.Contended && !isPlain(c) })
	for _, c := range cells {
		label := title(c)
		for _, id := range identities {
			p := place{c, id.subject}
			if len(m.at[p]) == 0 {
				continue
			}
			row := []string{label, string(id.subject)}
			label = ""
			for _, r := range rows {
				row = append(row, r.text(m, p))
			}
			g.rows = append(g.rows, row)
		}
	}
	return g
}

// contendedTables returns all tables of contenders with their own clients, as text.
func contendedTables(m measured) string {
	var b strings.Builder
	for _, w := range ways(m) {
		b.WriteString("### " + upper(w.what()) + "\n\n" + byContenders(m, w).markdown() + "\n")
	}
	if b.Len() == 0 {
		return "Not measured.\n"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// upper returns s with a capital first letter.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// idleWaiters returns the table of callers that only wait.
func idleWaiters(idles []result.Idle) grid {
	g := grid{head: []string{"waiters", "observed for", "after a wait of", "of a processor core", "commands a second and waiter"}}
	for _, w := range idles {
		g.rows = append(g.rows, []string{
			whole(float64(w.Waiters)), figure(w.For.Seconds()) + " s", figure(w.Settled.Seconds()) + " s",
			figure(100*w.Cores) + " %", figure(w.PerSecond),
		})
	}
	return g
}
