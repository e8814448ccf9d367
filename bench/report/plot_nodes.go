package report

import (
	"strconv"

	"gonum.org/v1/plot"

	"github.com/quorumlock/redlock/bench/result"
)

// nodesPlot shows the median cycle of one caller by the number of masters. It starts at zero,
// because the question is how many times one master's cost it is.
func nodesPlot(m measured) ([]*plot.Plot, []identity, error) {
	const x, y = "masters", "p50 of acquire + release, one caller"
	cells := m.where(func(c result.Cell) bool {
		return c.Scenario == result.Nodes && c.Callers == 1
	})
	d := collect(m, cells, cycleP50, func(s spread) bool { return s.n > 0 })
	if len(d.subjects) == 0 {
		return []*plot.Plot{nothing("", x, y, len(cells) > 0)}, nil, nil
	}
	xs := axis{min: float64(cells[0].Nodes) - 0.5, max: float64(cells[len(cells)-1].Nodes) + 0.5}
	for _, c := range cells {
		xs.ticks = append(xs.ticks, plot.Tick{Value: float64(c.Nodes), Label: strconv.Itoa(c.Nodes)})
	}
	p := panel("", x, y, xs, fromZero(d.positive.max, nanoseconds))
	for _, id := range backToFront(d.subjects) {
		s := series{of: id, joined: true, scale: func(v float64) float64 { return v }}
		for _, at := range d.of[id.subject] {
			x := float64(at.cell.Nodes) + 0.035*aside(id, d.subjects)
			s.points = append(s.points, point{x, at.spread})
		}
		if err := s.addTo(p); err != nil {
			return nil, nil, err
		}
	}
	return []*plot.Plot{p}, d.subjects, nil
}
