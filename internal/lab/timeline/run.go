// Package timeline shows the history of a run to people: as text, as a picture, and as a page
// with both.
//
// The output depends on the [Run] alone, so the same run gives the same bytes. It needs no
// script, font or address from elsewhere.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Run is the run to draw.
type Run struct {
	Title      string // one line, such as "seed 42: 5 masters, 4 clients, 6 s"
	Command    string // the command that replays the run; may be empty
	Nodes      int    // number of masters, which Events count from 1
	Clients    int    // number of clients, which Events count from 1
	End        time.Duration
	Events     []history.Event // in any order
	Violations []history.Violation
	Verdict    string // the result in one line; the number of violations if empty
}

// ordered returns r with copies of events and violations in the order of time. A run without
// an end ends with its last event.
func (r Run) ordered() Run {
	r.Events = slices.Clone(r.Events)
	history.Sort(r.Events)
	r.Violations = slices.Clone(r.Violations)
	slices.SortStableFunc(r.Violations, func(a, b history.Violation) int {
		return cmp.Compare(a.At, b.At)
	})
	if n := len(r.Events); r.End <= 0 && n > 0 {
		r.End = r.Events[n-1].At
	}
	return r
}

// clientIDs and nodeIDs return the lanes of the picture: those that the run announces, and
// then those that only its events name, so that a wrong count hides nothing.
func (r Run) clientIDs() []int {
	return lanes(r.Clients, r.Events, func(e history.Event) int { return e.Client })
}

func (r Run) nodeIDs() []int {
	return lanes(r.Nodes, r.Events, func(e history.Event) int { return e.Node })
}

func lanes(announced int, events []history.Event, id func(history.Event) int) []int {
	var ids []int
	for i := 1; i <= announced; i++ {
		ids = append(ids, i)
	}
	for _, e := range events {
		if i := id(e); i > announced {
			ids = append(ids, i)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// keys returns the keys of the run, in alphabetical order.
func (r Run) keys() []string {
	var keys []string
	for _, e := range r.Events {
		if e.Key != "" {
			keys = append(keys, e.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
