package report

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/quorumlock/redlock/bench/result"
)

// point is a figure of a subject at x, with its range.
type point struct {
	x float64
	y spread
}

// series draws points of one subject: a line if joined, a mark for each, and the range.
// Figures are transformed by scale, which must be monotonic.
type series struct {
	of     identity
	points []point
	joined bool
	scale  func(float64) float64
}

func (s series) addTo(p *plot.Plot) error {
	var line plotter.XYs
	var bars plotter.YErrors
	for _, at := range s.points {
		y := s.scale(at.y.median)
		line = append(line, plotter.XY{X: at.x, Y: y})
		bars = append(bars, struct{ Low, High float64 }{
			math.Abs(y - s.scale(at.y.min)), math.Abs(s.scale(at.y.max) - y),
		})
	}
	if len(line) == 0 {
		return nil
	}
	ranges, err := plotter.NewYErrorBars(struct {
		plotter.XYs
		plotter.YErrors
	}{line, bars})
	if err != nil {
		return err
	}
	ranges.LineStyle = s.of.bar()
	ranges.CapWidth = 4
	marks, err := plotter.NewScatter(line)
	if err != nil {
		return err
	}
	marks.GlyphStyle = s.of.mark()
	if s.joined {
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		l.LineStyle = s.of.line()
		add(p, l)
	}
	add(p, ranges, marks)
	return nil
}

// add adds plotters without letting them change the axes.
func add(p *plot.Plot, drawn ...plot.Plotter) {
	x, y := p.X, p.Y
	p.Add(drawn...)
	p.X, p.Y = x, y
}

// backToFront returns the subjects in the order of drawing: first the other libraries, then
// the thick line of this library, then the thin lines of the bounds.
func backToFront(subjects []identity) []identity {
	order := func(id identity) int {
		switch {
		case !id.library:
			return 2
		case id.subject == result.Quorumlock:
			return 1
		}
		return 0
	}
	sorted := slices.Clone(subjects)
	slices.SortStableFunc(sorted, func(a, b identity) int { return order(a) - order(b) })
	return sorted
}

// aside returns how far a subject's points are moved from their x, in steps, so that the
// ranges of several subjects do not cover each other.
func aside(of identity, among []identity) float64 {
	k := slices.IndexFunc(among, func(id identity) bool { return id.subject == of.subject })
	return float64(k) - float64(len(among)-1)/2
}
