package report

import (
	"strconv"

	"github.com/quorumlock/redlock/bench/result"
)

// callersCell returns the cell with this number of callers, or one without samples if there is
// none.
func callersCell(m measured, callers int) result.Cell {
	return firstOr(m.where(func(c result.Cell) bool {
		return c.Scenario == result.Callers && c.Callers == callers
	}))
}

// firstOr returns the first cell, or one without samples if there is none.
func firstOr(cells []result.Cell) result.Cell {
	if len(cells) == 0 {
		return result.Cell{}
	}
	return cells[0]
}

// title names a cell within its scenario.
func title(c result.Cell) string {
	callers := counted(c.Callers, "caller")
	switch c.Scenario {
	case result.Nodes:
		return counted(c.Nodes, "master") + ", " + callers
	case result.Faults:
		return condition(c) + ", " + callers
	case result.Links:
		return nanoseconds(float64(c.RTT)) + ", " + callers
	case result.Guarantees:
		if c.RTT > 0 {
			return callers + ", links of " + nanoseconds(float64(c.RTT))
		}
	case result.Contended:
		n := counted(c.Callers, "contender")
		switch {
		case c.OneClient:
			n = callers + " of one client"
		case c.Processes:
			n = whole(float64(c.Callers)) + " processes"
		}
		if c.RTT > 0 {
			n += ", links of " + nanoseconds(float64(c.RTT))
		}
		return n + ", " + wanted{c.Hold, c.Think}.what()
	}
	return callers
}

// condition describes what is broken in a cell.
func condition(c result.Cell) string {
	number := func(n int) string {
		if n < len(numbers) {
			return numbers[n]
		}
		return strconv.Itoa(n)
	}
	switch {
	case c.Hung > 0 && c.Refused > 0:
		return number(c.Hung) + " hung, " + number(c.Refused) + " refusing"
	case c.Hung > 0:
		return number(c.Hung) + " hung"
	case c.Refused > 0:
		return number(c.Refused) + " refusing"
	}
	return "healthy"
}

var numbers = []string{"none", "one", "two", "three", "four", "five"}
