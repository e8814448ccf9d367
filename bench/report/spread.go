package report

import (
	"math"
	"slices"
)

// spread is one figure over the rounds: its median and its range.
type spread struct {
	median, min, max float64
	n                int // rounds that gave a figure
	of               int // rounds in which it was measured at all
}

// spreadOf returns the spread of one figure a round. It ignores values that are not finite.
func spreadOf(figures []float64) spread {
	s := spread{of: len(figures)}
	finite := make([]float64, 0, len(figures))
	for _, f := range figures {
		if !math.IsNaN(f) && !math.IsInf(f, 0) {
			finite = append(finite, f)
		}
	}
	s.n = len(finite)
	if s.n == 0 {
		return s
	}
	slices.Sort(finite)
	s.min, s.max = finite[0], finite[s.n-1]
	s.median = (finite[(s.n-1)/2] + finite[s.n/2]) / 2
	return s
}

// text returns the spread as "median (min–max)", with each figure formatted by format. It
// omits the range if all rounds read the same. Without a figure it returns "not measured", or
// a dash if it was measured but gave none.
func (s spread) text(format func(float64) string, unit string) string {
	switch {
	case s.of == 0:
		return notMeasured
	case s.n == 0:
		return noFigure
	}
	t := format(s.median) + unit
	if s.n < s.of || format(s.min) != format(s.median) || format(s.max) != format(s.median) {
		t += " " + s.span(format)
	}
	return t
}

// span returns the range in brackets. If some rounds gave no figure, it adds how many did.
func (s spread) span(format func(float64) string) string {
	t := "(" + format(s.min) + "–" + format(s.max)
	if s.n < s.of {
		t += ", " + whole(float64(s.n)) + " of " + whole(float64(s.of)) + " rounds"
	}
	return t + ")"
}

const (
	notMeasured = "not measured"
	noFigure    = "–"
)
