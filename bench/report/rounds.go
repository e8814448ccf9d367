package report

import (
	"cmp"
	"slices"

	"github.com/quorumlock/redlock/bench/result"
)

// place is a subject in a cell.
type place struct {
	cell    result.Cell
	subject result.Subject
}

// measured is a run whose samples can be found by place and round.
type measured struct {
	run    result.Run
	rounds []int
	cells  []result.Cell
	at     map[place]map[int]result.Sample
}

// measure sorts the samples of run. If a place was measured twice in a round, the later sample
// counts.
func measure(run result.Run) measured {
	m := measured{run: run, at: map[place]map[int]result.Sample{}}
	for _, s := range run.Samples {
		p := place{s.Cell, s.Subject}
		if m.at[p] == nil {
			m.at[p] = map[int]result.Sample{}
		}
		m.at[p][s.Round] = s
		if !slices.Contains(m.rounds, s.Round) {
			m.rounds = append(m.rounds, s.Round)
		}
		if !slices.Contains(m.cells, s.Cell) {
			m.cells = append(m.cells, s.Cell)
		}
	}
	slices.Sort(m.rounds)
	slices.SortFunc(m.cells, func(a, b result.Cell) int {
		return cmp.Or(
			cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Callers, b.Callers),
			cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.Nodes, b.Nodes),
			cmp.Compare(a.Refused, b.Refused), cmp.Compare(a.Hung, b.Hung),
			cmp.Compare(a.Hold, b.Hold), cmp.Compare(a.Think, b.Think),
			later(a.OneClient, b.OneClient), later(a.Processes, b.Processes),
		)
	})
	return m
}

// later sorts false before true.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// metric takes one figure from a sample; ok is false if the sample has none.
type metric func(result.Sample) (figure float64, ok bool)

// over returns the metric at p over the rounds.
func (m measured) over(p place, of metric) spread {
	var s spread
	var figures []float64
	for _, round := range m.rounds {
		sample, found := m.at[p][round]
		if !found {
			continue
		}
		s.of++
		if f, ok := of(sample); ok {
			figures = append(figures, f)
		}
	}
	over := spreadOf(figures)
	over.of = s.of
	return over
}

// ratio returns the metric at p divided by that at by. It divides within each round, where a
// drift of the machine affects both, and then computes the spread.
func (m measured) ratio(p, by place, of metric) spread {
	var pairs int
	var ratios []float64
	for _, round := range m.rounds {
		above, found1 := m.at[p][round]
		below, found2 := m.at[by][round]
		if !found1 || !found2 {
			continue
		}
		pairs++
		a, ok1 := of(above)
		b, ok2 := of(below)
		if ok1 && ok2 {
			ratios = append(ratios, a/b) // spreadOf ignores a division by zero
		}
	}
	s := spreadOf(ratios)
	s.of = pairs
	return s
}

// failed counts the cycles that failed at p in all rounds, and all cycles.
func (m measured) failed(p place) (failed, all int) {
	for _, s := range m.at[p] {
		failed += s.Errors
		all += s.Errors + s.Cycles
	}
	return failed, all
}

// where returns the cells that match, in order.
func (m measured) where(match func(result.Cell) bool) []result.Cell {
	var found []result.Cell
	for _, c := range m.cells {
		if match(c) {
			found = append(found, c)
		}
	}
	return found
}

// healthy returns the cell that differs from c only in that nothing is broken.
func (m measured) healthy(c result.Cell) result.Cell {
	c.Hung, c.Refused = 0, 0
	if !slices.Contains(m.cells, c) {
		c.Scenario = result.Callers // the same point of another scenario
	}
	return c
}
