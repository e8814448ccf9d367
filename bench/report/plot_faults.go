package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quorumlock/redlock/bench/result"
)

// faultsPlot shows throughput under each fault. It is logarithmic, because a hung master costs
// some subjects orders of magnitude. Zero has its own shaded place below the logarithms.
func faultsPlot(m measured) ([]*plot.Plot, []identity, error) {
	const x, y = "of five masters", "cycles a second"
	cells := faultCells(m)
	d := collect(m, cells, throughput, func(s spread) bool { return s.n > 0 })
	if len(d.subjects) == 0 {
		return []*plot.Plot{nothing("", x, y, false)}, nil, nil
	}
	if d.positive.some { // down to a ten, which has a label
		d.positive.note(math.Pow(10, math.Floor(math.Log10(d.positive.min))))
	}
	ys := logarithmic(d.positive, short)
	room := math.Max(0.1*(ys.max-ys.min), 0.05)
	top := ys.min // of the place for zero
	zero := top - room/2
	ys.min -= room
	ys.ticks = append([]plot.Tick{{Value: zero, Label: "none"}}, ys.ticks...)

	xs := axis{min: -0.5, max: float64(len(cells)) - 0.5, groups: true}
	for i, c := range cells {
		xs.ticks = append(xs.ticks, plot.Tick{Value: float64(i), Label: condition(c)})
	}
	p := panel("", x+"; "+counted(cells[0].Callers, "caller"), y, xs, ys)
	if err := groups(p, len(cells), top); err != nil {
		return nil, nil, err
	}
	for _, id := range backToFront(d.subjects) {
		s := series{of: id, scale: func(v float64) float64 {
			if v <= 0 {
				return zero
			}
			return math.Log10(v)
		}}
		for _, at := range d.of[id.subject] {
			for i, c := range cells {
				if c == at.cell {
					x := float64(i) + 0.7/float64(len(d.subjects))*aside(id, d.subjects)
					s.points = append(s.points, point{x, at.spread})
				}
			}
		}
		if err := s.addTo(p); err != nil {
			return nil, nil, err
		}
	}
	return []*plot.Plot{p}, d.subjects, nil
}

// faultCells returns the cells to draw: those with the most callers, the healthy one first.
func faultCells(m measured) []result.Cell {
	callers := 0
	of := func(c result.Cell) bool { return c.Scenario == result.Faults }
	for _, c := range m.where(of) {
		callers = max(callers, c.Callers)
	}
	cells := m.where(func(c result.Cell) bool { return of(c) && c.Callers == callers })
	if len(cells) == 0 {
		return nil
	}
	if well := m.healthy(cells[0]); well.Scenario != result.Faults {
		cells = append([]result.Cell{well}, cells...)
	}
	return cells
}

// groups shades the place of zero, up to top, and draws lines between n groups.
func groups(p *plot.Plot, n int, top float64) error {
	lo, hi := p.X.Min, p.X.Max
	shade, err := plotter.NewPolygon(plotter.XYs{
		{X: lo, Y: p.Y.Min}, {X: hi, Y: p.Y.Min}, {X: hi, Y: top}, {X: lo, Y: top},
	})
	if err != nil {
		return err
	}
	shade.Color = color.NRGBA{0xF0, 0xF0, 0xF0, 0xFF}
	shade.LineStyle = draw.LineStyle{}
	add(p, shade)
	for i := range n - 1 {
		x := float64(i) + 0.5
		line, err := plotter.NewLine(plotter.XYs{{X: x, Y: p.Y.Min}, {X: x, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		line.LineStyle = draw.LineStyle{Color: color.NRGBA{0xAA, 0xAA, 0xAA, 0xFF}, Width: 0.5}
		add(p, line)
	}
	return nil
}
