// Package scenario defines what is compared, and runs it: cells in which one thing varies, and
// in each cell the subjects in turn.
package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// Cell is a point of a scenario and the subjects that are measured there.
type Cell struct {
	result.Cell
	Subjects []result.Subject
	// Linked cells go through links. So do all cells whose figures may be divided by theirs.
	Linked bool
}

// String returns the text that -only is matched against: the scenario, callers, nodes, faults,
// and how one key is wanted.
func (c Cell) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/c=%d/n=%d", c.Scenario, c.Callers, c.Nodes)
	if c.Hung > 0 {
		fmt.Fprintf(&b, "/hung=%d", c.Hung)
	}
	if c.Refused > 0 {
		fmt.Fprintf(&b, "/refused=%d", c.Refused)
	}
	if c.RTT > 0 {
		fmt.Fprintf(&b, "/rtt=%v", c.RTT)
	}
	if c.Scenario == result.Contended {
		fmt.Fprintf(&b, "/hold=%v/think=%v", c.Hold, c.Think)
	}
	if c.OneClient {
		b.WriteString("/one-client")
	}
	if c.Processes {
		b.WriteString("/processes")
	}
	return b.String()
}

const (
	usual        = 5  // masters, where their number does not vary
	faultCallers = 16 // enough to keep lanes and pools busy beside a hung master
)

var (
	everybody = []result.Subject{
		result.Quorumlock, result.Redsync, result.RedsyncFF, result.Redislock, result.Rueidis,
	}
	quorums = []result.Subject{result.Quorumlock, result.Redsync, result.RedsyncFF}
	pair    = []result.Subject{result.Quorumlock, result.Redsync}
	ours    = []result.Subject{result.Quorumlock, result.Fenced, result.Guarded, result.Both}
)

// Cells returns all cells that only matches, in the order of a round.
func Cells(only *regexp.Regexp) []Cell {
	var cells []Cell
	for _, list := range [][]Cell{byCallers(), byNodes(), byFaults(), byLinks(), byGuarantees(), byContenders()} {
		for _, c := range list {
			if only.MatchString(c.String()) {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// byCallers includes the floor with one caller, and the ceiling with so many callers that a
// lock could come near it.
func byCallers() (cells []Cell) {
	for _, callers := range []int{1, 16, 128, 1024} {
		c := Cell{Cell: result.Cell{Scenario: result.Callers, Callers: callers, Nodes: usual}}
		c.Subjects = append(c.Subjects, everybody...)
		switch callers {
		case 1:
			c.Subjects = append(c.Subjects, result.Floor)
		case 1024:
			c.Subjects = append(c.Subjects, result.Ceiling)
		}
		cells = append(cells, c)
	}
	return cells
}

func byNodes() (cells []Cell) {
	for _, callers := range []int{1, 128} {
		for _, nodes := range []int{1, 3, 5, 7, 9} {
			c := Cell{Cell: result.Cell{Scenario: result.Nodes, Callers: callers, Nodes: nodes}}
			c.Subjects = append(c.Subjects, pair...)
			if callers == 1 {
				c.Subjects = append(c.Subjects, result.Floor)
			}
			cells = append(cells, c)
		}
	}
	return cells
}

func byFaults() (cells []Cell) {
	for _, fault := range []struct{ hung, refused int }{{0, 0}, {1, 0}, {2, 0}, {0, 1}} {
		cells = append(cells, Cell{
			Cell: result.Cell{
				Scenario: result.Faults, Callers: faultCallers, Nodes: usual,
				Hung: fault.hung, Refused: fault.refused,
			},
			Subjects: quorums,
			Linked:   true,
		})
	}
	return cells
}

func byLinks() (cells []Cell) {
	for _, callers := range []int{1, 16} {
		for _, rtt := range []time.Duration{1, 10, 50} {
			cells = append(cells, Cell{
				Cell: result.Cell{
					Scenario: result.Links, Callers: callers, Nodes: usual,
					RTT: rtt * time.Millisecond,
				},
				Subjects: quorums,
				Linked:   true,
			})
		}
	}
	return cells
}

// byGuarantees compares options that are off by default with the defaults.
func byGuarantees() (cells []Cell) {
	for _, at := range []struct {
		callers int
		rtt     time.Duration
	}{{1, 0}, {16, 0}, {128, 0}, {1, 10 * time.Millisecond}, {16, 10 * time.Millisecond}} {
		cells = append(cells, Cell{
			Cell: result.Cell{
				Scenario: result.Guarantees, Callers: at.callers, Nodes: usual, RTT: at.rtt,
			},
			Subjects: ours,
			Linked:   at.rtt > 0,
		})
	}
	return cells
}

// rotated returns the order in which subjects have their turns. It changes from round to
// round, so that no subject always runs on the caches and sockets that the same one has left.
func rotated(subjects []result.Subject, round int) []result.Subject {
	by := round % len(subjects)
	return slices.Concat(subjects[by:], subjects[:by])
}

// Quick returns the cells that show in little time that everything works. Among a thousand
// callers, it leaves out subjects that dial thousands of connections.
func Quick(cells []Cell) (quick []Cell) {
	for _, c := range cells {
		if c.RTT > quickRTT {
			continue
		}
		if c.Scenario == result.Contended && !quickContended(c) {
			continue
		}
		if c.Callers > quickCallers {
			c.Subjects = slices.DeleteFunc(slices.Clone(c.Subjects), func(s result.Subject) bool {
				return s != result.Quorumlock && s != result.Rueidis && s != result.Ceiling
			})
		}
		quick = append(quick, c)
	}
	return quick
}

const (
	quickCallers = 128
	quickRTT     = 10 * time.Millisecond
)
