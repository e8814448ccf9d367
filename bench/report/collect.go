package report

import "github.com/quorumlock/redlock/bench/result"

// inCell is a subject's figure in a cell.
type inCell struct {
	cell   result.Cell
	spread spread
}

// collection is what a plot draws of one metric.
type collection struct {
	subjects []identity // with something to draw
	of       map[result.Subject][]inCell
	positive extent // of all figures above zero, ranges included
}

// collect returns the metric of each subject in each cell, if it is fit to be drawn.
func collect(m measured, cells []result.Cell, of metric, fit func(spread) bool) collection {
	d := collection{of: map[result.Subject][]inCell{}}
	for _, id := range identities {
		for _, c := range cells {
			s := m.over(place{c, id.subject}, of)
			if !fit(s) {
				continue
			}
			d.of[id.subject] = append(d.of[id.subject], inCell{c, s})
			d.positive.note(s.min, s.median, s.max)
		}
		if len(d.of[id.subject]) > 0 {
			d.subjects = append(d.subjects, id)
		}
	}
	return d
}
