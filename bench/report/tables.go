package report

import (
	"slices"
	"strings"

	"github.com/quorumlock/redlock/bench/result"
)

// grid is a table: a heading and rows of as many columns.
type grid struct {
	head []string
	rows [][]string
}

// markdown returns the grid in Markdown. It escapes bars, so that a bar in a cell does not end
// the cell.
func (g grid) markdown() string {
	var b strings.Builder
	line := func(row []string) {
		for _, cell := range row {
			b.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		b.WriteString("|\n")
	}
	line(g.head)
	b.WriteString(strings.Repeat("|---", len(g.head)) + "|\n")
	for _, row := range g.rows {
		line(row)
	}
	return b.String()
}

// column is a column of a scenario's table.
type column struct {
	head string
	text func(measured, place) string
}

func cyclesColumn() column {
	return column{"cycles a second", func(m measured, p place) string {
		return m.over(p, throughput).text(figure, "")
	}}
}

func latencyColumn(head string, of metric) column {
	return column{head, func(m measured, p place) string { return durations(m.over(p, of)) }}
}

// healthyColumn is a metric divided by that of the same subject when nothing is broken.
func healthyColumn(head string, of metric) column {
	return column{head, func(m measured, p place) string {
		return ratioText(m, p, place{m.healthy(p.cell), p.subject}, of)
	}}
}

// withoutColumn is a metric divided by that of this library with its defaults.
func withoutColumn(head string, of metric) column {
	return column{head, func(m measured, p place) string { return ratioText(m, p, plain(p), of) }}
}

// ratioText returns a ratio for a column. It is empty in the row of the divisor itself.
func ratioText(m measured, p, by place, of metric) string {
	if p == by {
		return ""
	}
	return times(m.ratio(p, by, of))
}

func roundTripsColumn(head string, of metric) column {
	return column{head, func(m measured, p place) string {
		if p.cell.RTT == 0 {
			return ""
		}
		return m.over(p, inRoundTrips(of)).text(figure, "")
	}}
}

func allocsColumn() column {
	return column{"allocations a cycle", func(m measured, p place) string {
		return m.over(p, allocs).text(figure, "")
	}}
}

func failedColumn() column {
	return column{"failed", func(m measured, p place) string {
		failed, all := m.failed(p)
		if failed == 0 {
			return "0"
		}
		return whole(float64(failed)) + " of " + whole(float64(all))
	}}
}

// columns are the columns of each scenario's table.
var columns = map[result.Scenario][]column{
	result.Callers: {
		cyclesColumn(),
		latencyColumn("p50", cycleP50), latencyColumn("p99", cycleP99),
		allocsColumn(), failedColumn(),
	},
	result.Nodes: {
		latencyColumn("p50", cycleP50), latencyColumn("p99", cycleP99),
		cyclesColumn(), failedColumn(),
	},
	result.Faults: {
		cyclesColumn(), healthyColumn("against healthy", throughput),
		latencyColumn("p50", cycleP50), latencyColumn("p99", cycleP99),
		healthyColumn("p99 against healthy", cycleP99), failedColumn(),
	},
	result.Links: {
		latencyColumn("acquire p50", acquireP50),
		roundTripsColumn("in round trips", acquireP50),
		latencyColumn("acquire p99", acquireP99),
		roundTripsColumn("in round trips", acquireP99),
		cyclesColumn(), failedColumn(),
	},
	result.Guarantees: {
		cyclesColumn(), withoutColumn("against without", throughput),
		latencyColumn("p50", cycleP50), withoutColumn("p50 against without", cycleP50),
		latencyColumn("p99", cycleP99),
		latencyColumn("acquire p50", acquireP50), roundTripsColumn("in round trips", acquireP50),
		allocsColumn(), failedColumn(),
	},
}

// scenario returns the table of a scenario: a row for each subject in each cell. If a library
// was measured only in other cells of the scenario, its row says that it was not measured in
// this one. There are no rows if nothing was measured.
func scenario(m measured, of result.Scenario, first string) grid {
	cols := columns[of]
	g := grid{head: []string{first, "subject"}}
	for _, c := range cols {
		g.head = append(g.head, c.head)
	}
	cells := m.where(func(c result.Cell) bool { return c.Scenario == of })
	compared := func(id identity) bool {
		return id.library && slices.ContainsFunc(cells, func(c result.Cell) bool {
			return len(m.at[place{c, id.subject}]) > 0
		})
	}
	for _, cell := range cells {
		label := title(cell)
		for _, id := range identities {
			p := place{cell, id.subject}
			found := len(m.at[p]) > 0
			if !found && !compared(id) {
				continue
			}
			row := []string{label, string(id.subject)}
			label = ""
			if !found {
				row = append(row, notMeasured)
				row = append(row, slices.Repeat([]string{""}, len(cols)-1)...)
			} else {
				for _, c := range cols {
					row = append(row, c.text(m, p))
				}
			}
			g.rows = append(g.rows, row)
		}
	}
	return g
}

// liveLocks returns the table of locks that are only kept alive.
func liveLocks(renewals []result.Renewal) grid {
	g := grid{head: []string{"locks", "ttl", "observed for", "processor cores",
		"bytes a lock", "renewals a second", "lost", "acquired in", "released in"}}
	for _, k := range kept(renewals) {
		g.rows = append(g.rows, []string{
			whole(float64(k.locks)), nanoseconds(float64(k.ttl)), durations(k.observed),
			k.cores.text(figure, ""), k.perLock.text(whole, ""), k.rate.text(figure, ""),
			k.lost.text(whole, ""), durations(k.acquire), durations(k.release),
		})
	}
	return g
}

// headlines returns the table of headline figures.
func headlines(m measured) grid {
	g := grid{head: []string{"what", "against", "measured", "aim"}}
	for _, b := range bars(m) {
		g.rows = append(g.rows, []string{b.what, b.against, b.measured, b.aim})
	}
	return g
}
