package main

import (
	"slices"
	"strings"
)

// table has a row for each node. The name of a node gets the width that the columns leave. A name
// that is longer goes on in the lines below, as two that are cut may look the same.
type table struct {
	indent  string
	columns []tableColumn
	text    string // the heading above the rows' texts
	rows    []tableRow
}

// tableColumn is a column after that of the names.
type tableColumn struct {
	head  string
	right bool // aligned
	least int  // the width
}

type tableRow struct {
	name  string
	cells []tableCell
	text  string // fills the rest of the row, in lines of its own width
}

type tableCell struct {
	text string
	tint colour // empty: none
}

// leastName is the width of a name, if it is longer, however wide the columns are.
const leastName = 8

// show returns the table as text.
func (t table) show(p painter) string {
	const head = "node"
	room := columns - len(t.indent)
	widths := make([]int, len(t.columns))
	heading := tableRow{name: head, text: t.text}
	for i, c := range t.columns {
		widths[i] = max(c.least, width(c.head))
		for _, r := range t.rows {
			if i < len(r.cells) {
				widths[i] = max(widths[i], width(r.cells[i].text))
			}
		}
		room -= len(gap) + widths[i]
		heading.cells = append(heading.cells, tableCell{c.head, dim})
	}
	name := len(head)
	for _, r := range t.rows {
		name = max(name, width(r.name))
	}
	name = min(name, max(room, leastName))

	var b strings.Builder
	for row, r := range append([]tableRow{heading}, t.rows...) {
		parts := slices.Collect(slices.Chunk([]rune(r.name), name))
		if len(parts) == 0 {
			parts = append(parts, nil)
		}
		tint := colour("")
		if row == 0 {
			tint = dim
		}
		line, at := t.indent+p.paint(tint, pad(string(parts[0]), name)), len(t.indent)+name
		for i, cell := range r.cells { // a row with a text may have fewer
			text := pad(cell.text, widths[i])
			if t.columns[i].right {
				text = padLeft(cell.text, widths[i])
			}
			line += gap + p.paint(cell.tint, text)
			at += len(gap) + widths[i]
		}
		if r.text != "" {
			at += len(gap)
			line += gap + p.paint(tint, hang(r.text, at, columns-at))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		for _, part := range parts[1:] {
			b.WriteString(t.indent + string(part) + "\n")
		}
	}
	return b.String()
}
