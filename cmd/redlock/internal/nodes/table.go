package nodes

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/terminal"
)

// column is one attribute of all nodes. An empty cell means that it is unknown.
type column struct {
	head  string
	right bool
	cell  func(*master) string
	tint  func(*master) terminal.Colour // nil for no colour
}

func healthColumns() []column {
	return []column{
		{head: "state", cell: stateCell, tint: stateColour},
		{head: "ping ms", right: true, cell: pingCell},
		{head: "clock ms", right: true, cell: clockCell},
		{head: "up", right: true, cell: uptimeCell},
		{head: "role", cell: func(m *master) string { return m.Role }},
		{head: "run id", cell: func(m *master) string { return m.RunID[:min(len(m.RunID), 8)] }},
	}
}

func settingColumns() []column {
	return []column{
		{head: "version", cell: func(m *master) string { return m.Version }},
		{head: "aof", cell: aofCell},
		{head: "snapshots", cell: saveCell},
		{head: "maxmemory", right: true, cell: memoryCell},
		{head: "eviction", cell: func(m *master) string { return m.Policy }},
	}
}

// masterTable returns a table with a row for each master.
func masterTable(masters []*master, cols []column) terminal.Table {
	t := terminal.Table{Indent: terminal.Indent}
	for _, c := range cols {
		t.Columns = append(t.Columns, terminal.Column{Head: c.head, Right: c.right})
	}
	for _, m := range masters {
		row := terminal.Row{Name: m.Addr}
		for _, c := range cols {
			cell := terminal.Cell{Text: known(c.cell(m))}
			if c.tint != nil {
				cell.Tint = c.tint(m)
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func known(s string) string {
	if s == "" {
		return "?"
	}
	return s
}

func stateCell(m *master) string {
	if m.State == "quarantine" {
		return "quarantine " + terminal.Brief(time.Duration(m.Quarantine))
	}
	return m.State
}

func stateColour(m *master) terminal.Colour {
	switch m.State {
	case stateOK:
		return terminal.Green
	case "quarantine", "loading":
		return terminal.Yellow
	}
	return terminal.Red
}

func pingCell(m *master) string {
	if m.RoundTrip == 0 {
		return ""
	}
	if m.RoundTrip < cli.Micros(100*time.Millisecond) {
		return fmt.Sprintf("%.2f", inMillis(time.Duration(m.RoundTrip)))
	}
	return fmt.Sprint(time.Duration(m.RoundTrip).Milliseconds())
}

func clockCell(m *master) string {
	switch {
	case m.Clock == nil:
		return ""
	case max(m.Clock.Offset, -m.Clock.Offset) >= cli.Micros(10*time.Second):
		return fmt.Sprintf("%+.0f s", time.Duration(m.Clock.Offset).Seconds())
	}
	// Show no more digits than are certain: where the uncertainty is large, tenths mean nothing.
	unit, digits := time.Millisecond/10, 1
	if max(m.Clock.Offset, -m.Clock.Offset, m.Clock.Within) >= cli.Micros(100*time.Millisecond) {
		unit, digits = time.Millisecond, 0
	}
	off := time.Duration(m.Clock.Offset).Round(unit)
	within := (time.Duration(m.Clock.Within) + unit - 1).Truncate(unit) // round up
	return fmt.Sprintf("%+.*f±%.*f", digits, inMillis(off), digits, inMillis(within))
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func uptimeCell(m *master) string {
	if m.Uptime == nil {
		return ""
	}
	return terminal.Brief(seconds(*m.Uptime))
}

func aofCell(m *master) string {
	if m.Appendonly == "yes" {
		return known(m.Appendfsync)
	}
	return m.Appendonly
}

func saveCell(m *master) string {
	switch {
	case m.Save == nil:
		return ""
	case *m.Save == "":
		return "no"
	}
	return "yes"
}

func memoryCell(m *master) string {
	switch {
	case m.Maxmemory == nil:
		return ""
	case *m.Maxmemory == 0:
		return "no limit"
	}
	return size(*m.Maxmemory)
}

// size formats a number of bytes in the units of redis.conf.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	amount, unit := float64(n)/1024, 0
	for amount >= 1024 {
		amount, unit = amount/1024, unit+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", amount), ".0") + " " + units[unit:unit+1] + "B"
}
