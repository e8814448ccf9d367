package report

import (
	"math"
	"time"

	"gonum.org/v1/plot"

	"github.com/quorumlock/redlock/bench/result"
)

// drawnWay is the way to want the key that plots show: the one that all subjects have.
var drawnWay = wanted{hold: 5 * time.Millisecond}

// contendedPlot shows the share of the ideal throughput that contenders get, and how long no
// contender has the key while they want it.
func contendedPlot(m measured) ([]*plot.Plot, []identity, error) {
	share := byNumber{"of the ideal acquisitions a second", ofIdeal, figure, true}
	gap := byNumber{"p50 of the gap between holders", gapP50, nanoseconds, false}
	subjects := share.subjects(m)
	var panels []*plot.Plot
	for _, b := range []byNumber{share, gap} {
		p, err := b.panel(m, subjects)
		if err != nil {
			return nil, nil, err
		}
		panels = append(panels, p)
	}
	return panels, subjects, nil
}

// commandsPlot shows how many commands an acquisition costs the masters.
func commandsPlot(m measured) ([]*plot.Plot, []identity, error) {
	b := byNumber{"commands an acquisition", commands, short, false}
	subjects := b.subjects(m)
	p, err := b.panel(m, subjects)
	return []*plot.Plot{p}, subjects, err
}

// byNumber is a figure by the number of contenders.
type byNumber struct {
	y        string
	of       metric
	label    func(float64) string
	fromZero bool // otherwise the axis is logarithmic
}

func (b byNumber) collect(m measured) ([]result.Cell, collection) {
	cells := drawnWay.cellsOf(m)
	return cells, collect(m, cells, b.of, func(s spread) bool { return s.n > 0 && s.min > 0 })
}

// subjects returns the subjects with something to draw.
func (b byNumber) subjects(m measured) []identity {
	_, d := b.collect(m)
	return d.subjects
}

func (b byNumber) panel(m measured, subjects []identity) (*plot.Plot, error) {
	const x = "contenders; the key is held for 5 ms"
	cells, d := b.collect(m)
	if len(d.subjects) == 0 {
		return nothing("", x, b.y, len(cells) > 0), nil
	}
	xs := axis{min: math.Inf(1), max: math.Inf(-1)}
	for _, c := range cells {
		v := math.Log2(float64(c.Callers))
		xs.min, xs.max = math.Min(xs.min, v-0.4), math.Max(xs.max, v+0.4)
		xs.ticks = append(xs.ticks, plot.Tick{Value: v, Label: whole(float64(c.Callers))})
	}
	ys, scale := logarithmic(d.positive, b.label), math.Log10
	if b.fromZero {
		ys = fromZero(max(d.positive.max, 1), b.label)
		scale = func(v float64) float64 { return v }
	}
	p := panel("", x, b.y, xs, ys)
	for _, id := range backToFront(subjects) {
		s := series{of: id, joined: true, scale: scale}
		for _, at := range d.of[id.subject] {
			x := math.Log2(float64(at.cell.Callers)) + 0.05*aside(id, subjects)
			s.points = append(s.points, point{x, at.spread})
		}
		if err := s.addTo(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}
