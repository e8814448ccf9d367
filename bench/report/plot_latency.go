package report

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/quorumlock/redlock/bench/result"
)

// marked are the percentiles with a tick and a mark. The greatest latency is left out, because
// it depends more on the length of a turn than on the lock.
var marked = []float64{0, 50, 90, 99, 99.9}

// percentiles returns the percentiles that are drawn.
func percentiles() []float64 {
	var all []float64
	for p := range 100 {
		all = append(all, float64(p))
	}
	return append(all, 99.9)
}

// stretched returns the place of a percentile on an axis that gives each tenth of the tail as
// much room as the one before.
func stretched(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

// latencyPlot shows the distribution of an acquisition's latency, with one caller and with
// many.
func latencyPlot(m measured) ([]*plot.Plot, []identity, error) {
	const x, y = "percentile", "latency of an acquisition"
	callers := []int{1, 128}
	curves := make([]map[result.Subject][]point, len(callers))
	var extent extent
	for i, n := range callers {
		curves[i] = map[result.Subject][]point{}
		cell := callersCell(m, n)
		for _, id := range identities {
			for _, p := range percentiles() {
				if s := m.over(place{cell, id.subject}, acquireAt(p)); s.n > 0 {
					curves[i][id.subject] = append(curves[i][id.subject], point{p, s})
					extent.note(s.median)
				}
			}
		}
	}
	subjects := slices.DeleteFunc(slices.Clone(identities), func(id identity) bool {
		return len(curves[0][id.subject])+len(curves[1][id.subject]) == 0
	})
	xs := axis{min: 0, max: stretched(marked[len(marked)-1])}
	for _, p := range marked {
		xs.ticks = append(xs.ticks, plot.Tick{Value: stretched(p), Label: rounded(p)})
	}
	var panels []*plot.Plot
	for i, n := range callers {
		title, label := counted(n, "caller"), y
		if i > 0 {
			label = "" // only the first panel has the label
		}
		if len(curves[i]) == 0 {
			panels = append(panels, nothing(title, x, label, callersCell(m, n).Callers > 0))
			continue
		}
		p := panel(title, x, label, xs, logarithmic(extent, nanoseconds))
		for _, id := range backToFront(subjects) {
			if err := addCurve(p, id, curves[i][id.subject]); err != nil {
				return nil, nil, err
			}
		}
		panels = append(panels, p)
	}
	return panels, subjects, nil
}

// addCurve draws a distribution, with marks that distinguish it from others.
func addCurve(p *plot.Plot, id identity, points []point) error {
	var curve, marks plotter.XYs
	for _, at := range points {
		xy := plotter.XY{X: stretched(at.x), Y: math.Log10(at.y.median)}
		curve = append(curve, xy)
		if slices.Contains(marked, at.x) {
			marks = append(marks, xy)
		}
	}
	if len(curve) == 0 {
		return nil
	}
	line, err := plotter.NewLine(curve)
	if err != nil {
		return err
	}
	line.LineStyle = id.line()
	add(p, line)
	if len(marks) == 0 {
		return nil
	}
	scatter, err := plotter.NewScatter(marks)
	if err != nil {
		return err
	}
	scatter.GlyphStyle = id.mark()
	add(p, scatter)
	return nil
}

// acquireAt is a percentile of an acquisition's latency in nanoseconds. Without the whole
// distribution, only the percentiles that are always stored have a figure.
func acquireAt(percentile float64) metric {
	return func(s result.Sample) (float64, bool) {
		if i := int(percentile); percentile == float64(i) && i < len(s.Acquire.Quantiles) {
			return latency(s, s.Acquire.Quantiles[i])
		}
		switch percentile {
		case 50:
			return latency(s, s.Acquire.P50)
		case 90:
			return latency(s, s.Acquire.P90)
		case 99:
			return latency(s, s.Acquire.P99)
		case 99.9:
			return latency(s, s.Acquire.P999)
		}
		return 0, false
	}
}
