package report

import (
	"math"

	"gonum.org/v1/plot"
)

// axis is the range of an axis and its ticks. The values of a logarithmic axis are logarithms;
// its ticks are labelled with the figures.
type axis struct {
	min, max float64
	ticks    []plot.Tick
	groups   bool // ticks name groups of points and need no line
}

// extent holds the least and the greatest positive figure noted. Other figures have no place
// on a logarithmic axis.
type extent struct {
	min, max float64
	some     bool
}

func (e *extent) note(figures ...float64) {
	for _, f := range figures {
		if f <= 0 {
			continue
		}
		if !e.some {
			e.min, e.max, e.some = f, f, true
		}
		e.min, e.max = math.Min(e.min, f), math.Max(e.max, f)
	}
}

// logarithmic returns an axis for positive figures of this extent, with some room around them,
// or from 1 to 10 if there are none. It labels tens and, if these are few, twos and fives.
func logarithmic(e extent, label func(float64) string) axis {
	if !e.some {
		e.note(1, 10)
	}
	a := axis{min: math.Log10(e.min) - 0.1, max: math.Log10(e.max) + 0.1}
	steps := []float64{1}
	if a.max-a.min < 2.5 {
		steps = []float64{1, 2, 5}
	}
	for decade := math.Floor(a.min); decade <= a.max; decade++ {
		for _, step := range []float64{1, 2, 3, 4, 5, 6, 7, 8, 9} {
			figure := step * math.Pow(10, decade)
			tick := plot.Tick{Value: math.Log10(figure)}
			if tick.Value < a.min || tick.Value > a.max {
				continue
			}
			for _, s := range steps {
				if s == step {
					tick.Label = label(figure)
				}
			}
			a.ticks = append(a.ticks, tick)
		}
	}
	return a
}

// fromZero returns a linear axis from zero to a little above limit, with labelled ticks.
func fromZero(limit float64, label func(float64) string) axis {
	step := math.Pow(10, math.Floor(math.Log10(limit)))
	switch {
	case limit/step < 2:
		step /= 5
	case limit/step < 5:
		step /= 2
	}
	a := axis{min: 0, max: limit * 1.05}
	for i := 0; float64(i)*step <= a.max; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: label(v)})
	}
	return a
}
