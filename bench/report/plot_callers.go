package report

import (
	"math"

	"gonum.org/v1/plot"

	"github.com/quorumlock/redlock/bench/result"
)

// callersPlot shows throughput by the number of callers, both logarithmic.
func callersPlot(m measured) ([]*plot.Plot, []identity, error) {
	const x, y = "callers", "cycles a second"
	cells := m.where(func(c result.Cell) bool {
		return c.Scenario == result.Callers && c.Callers > 0
	})
	// Zero has no logarithm; the table shows it.
	d := collect(m, cells, throughput, func(s spread) bool { return s.n > 0 && s.min > 0 })
	if len(d.subjects) == 0 {
		return []*plot.Plot{nothing("", x, y, len(cells) > 0)}, nil, nil
	}
	xs := axis{min: math.Inf(1), max: math.Inf(-1)}
	for _, c := range cells {
		v := math.Log10(float64(c.Callers))
		xs.min, xs.max = math.Min(xs.min, v-0.12), math.Max(xs.max, v+0.12)
		xs.ticks = append(xs.ticks, plot.Tick{Value: v, Label: whole(float64(c.Callers))})
	}
	p := panel("", x, y, xs, logarithmic(d.positive, short))
	for _, id := range backToFront(d.subjects) {
		s := series{of: id, joined: true, scale: math.Log10}
		for _, at := range d.of[id.subject] {
			x := math.Log10(float64(at.cell.Callers)) + 0.013*aside(id, d.subjects)
			s.points = append(s.points, point{x, at.spread})
		}
		if err := s.addTo(p); err != nil {
			return nil, nil, err
		}
	}
	return []*plot.Plot{p}, d.subjects, nil
}
