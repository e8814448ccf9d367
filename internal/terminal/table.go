package terminal

import (
	"slices"
	"strings"
)

// Table has a row for each node. The names of the nodes get the width that the columns leave. A
// longer name goes on in the lines below, because two names that are cut may look the same.
type Table struct {
	Indent  string
	Columns []Column
	Text    string // the heading above the rows' texts
	Rows    []Row
}

// Column is a column to the right of the names.
type Column struct {
	Head  string
	Right bool // aligned to the right
	Least int  // the least width
}

type Row struct {
	Name  string
	Cells []Cell
	Text  string // fills the rest of the row, in lines of its own width
}

type Cell struct {
	Text string
	Tint Colour // empty for no colour
}

// leastName is the width that long names keep, however wide the columns are.
const leastName = 8

// Show returns the table as text.
func (t Table) Show(p Painter) string {
	const head = "node"
	room := Columns - len(t.Indent)
	widths := make([]int, len(t.Columns))
	heading := Row{Name: head, Text: t.Text}
	for i, c := range t.Columns {
		widths[i] = max(c.Least, Width(c.Head))
		for _, r := range t.Rows {
			if i < len(r.Cells) {
				widths[i] = max(widths[i], Width(r.Cells[i].Text))
			}
		}
		room -= len(Gap) + widths[i]
		heading.Cells = append(heading.Cells, Cell{c.Head, Dim})
	}
	name := len(head)
	for _, r := range t.Rows {
		name = max(name, Width(r.Name))
	}
	name = min(name, max(room, leastName))

	var b strings.Builder
	for row, r := range append([]Row{heading}, t.Rows...) {
		parts := slices.Collect(slices.Chunk([]rune(r.Name), name))
		if len(parts) == 0 {
			parts = append(parts, nil)
		}
		tint := Colour("")
		if row == 0 {
			tint = Dim
		}
		line, at := t.Indent+p.Paint(tint, pad(string(parts[0]), name)), len(t.Indent)+name
		for i, cell := range r.Cells { // a row with a text may have fewer
			text := pad(cell.Text, widths[i])
			if t.Columns[i].Right {
				text = padLeft(cell.Text, widths[i])
			}
			line += Gap + p.Paint(cell.Tint, text)
			at += len(Gap) + widths[i]
		}
		if r.Text != "" {
			at += len(Gap)
			line += Gap + p.Paint(tint, Hang(r.Text, at, Columns-at))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, part := range parts[1:] {
			b.WriteString(t.Indent + string(part) + "\n")
		}
	}
	return b.String()
}
