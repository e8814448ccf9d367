package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quorumlock/redlock/bench/result"
)

// Summary writes the run to w as plain text for a terminal: the headline figures, and then
// each scenario. It returns the error of w.
func Summary(w io.Writer, run result.Run) error {
	m := measure(run)
	var b strings.Builder
	if run.Quick {
		b.WriteString("QUICK RUN: the figures mean nothing.\n\n")
	}
	fmt.Fprintf(&b, "%s; median (min–max)\n\n", counted(len(m.rounds), "round"))
	headlines(m).plain(&b)
	for _, s := range []struct {
		of    result.Scenario
		first string
	}{
		{result.Callers, "callers"},
		{result.Nodes, "masters"},
		{result.Faults, "of five masters"},
		{result.Links, "round trip"},
		{result.Guarantees, "callers"},
	} {
		if g := scenario(m, s.of, s.first); len(g.rows) > 0 {
			b.WriteByte('\n')
			g.plain(&b)
		}
	}
	contendedSummary(m, &b)
	if g := liveLocks(run.Renewals); len(g.rows) > 0 {
		b.WriteByte('\n')
		g.plain(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// contendedSummary writes the figures of callers that want one key, if there are any.
func contendedSummary(m measured, b *strings.Builder) {
	all := ways(m)
	if others := otherWays(m); len(all)+len(others.rows)+len(m.run.Idles) > 0 {
		b.WriteByte('\n')
		goalTable(m).plain(b)
		for _, w := range all {
			fmt.Fprintf(b, "\n%s; by the number of contenders:\n", w.what())
			byContenders(m, w).plain(b)
		}
		for _, g := range []grid{others, idleWaiters(m.run.Idles)} {
			if len(g.rows) > 0 {
				b.WriteByte('\n')
				g.plain(b)
			}
		}
	}
}

// plain writes the grid in aligned columns.
func (g grid) plain(b *strings.Builder) {
	var t strings.Builder
	w := tabwriter.NewWriter(&t, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{g.head}, g.rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush() // a strings.Builder takes everything
	for line := range strings.Lines(t.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}
