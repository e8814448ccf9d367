package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/history"
)

// Excuse is a violation of what Redlock does not promise.
type Excuse struct {
	history.Violation
	Kind Kind // of the fault that explains it
}

// judge sorts the violations into those that a fault beyond Redlock's promises
// explains, and those that nothing does.
func (r *Result) judge(found []history.Violation) {
	slices.SortStableFunc(found, func(a, b history.Violation) int { return cmp.Compare(a.At, b.At) })
	overlaps := map[string]Excuse{} // the first that is excused, by key
	var left []history.Violation
	for _, v := range found {
		why := excuse(r.Plan, r.Events, v)
		if why == "" {
			left = append(left, v)
			continue
		}
		r.Excused = append(r.Excused, Excuse{Violation: v, Kind: why})
		if _, known := overlaps[v.Key]; v.Rule == history.Exclusion && !known {
			overlaps[v.Key] = Excuse{v, why}
		}
	}
	for _, v := range left {
		// Since holds overlapped there is no order either; the model may name the
		// earlier of the two.
		first, any := overlaps[v.Key]
		if v.Rule == history.Model && any && (v.At >= first.At || len(v.Locks) > 0 && v.Locks[0] == first.Locks[0]) {
			r.Excused = append(r.Excused, Excuse{Violation: v, Kind: first.Kind})
		} else {
			r.Violations = append(r.Violations, v)
		}
	}
}

// excuse says which fault beyond Redlock's promises explains that two held a lock,
// or that a lock was not covered; or nothing. Either the clock of the earlier
// holder's client is slower than its drift allows for, or a node lost the key of one
// of the locks before its time.
func excuse(p Plan, events []history.Event, v history.Violation) Kind {
	if !slices.Contains([]string{history.Exclusion, history.Context, Coverage}, v.Rule) {
		return ""
	}
	first := v.Locks[0]
	if c := p.Clients[first.Client-1]; c.Rate < 1-c.Drift.Factor {
		// By a true clock its keys live for as long as it believes by its own.
		asked := askedAt(events, first)
		if v.Rule == Coverage || v.At >= asked+time.Duration(float64(first.Until-asked)*c.Rate) {
			return SlowClient
		}
	}
	for _, l := range v.Locks {
		if kind := p.lost(events, l, v.At); kind != "" {
			return kind
		}
	}
	return ""
}

// lost is the kind of a fault by which a node that had the lock's key lost it, or a
// part of its life, before at.
func (p Plan) lost(events []history.Event, l history.Lock, at time.Duration) Kind {
	type span struct{ from, to time.Duration }
	had := map[int]span{} // by node
	lost := func(node int, by time.Duration) Kind {
		for i, f := range p.Faults {
			forgets := f.Kind == Amnesia || f.Kind == JumpAhead
			s := had[node]
			if forgets && f.Node == node-1 && s.from <= f.At && f.At < s.to && f.At <= by && !slices.Contains(p.Config.Without, i+1) {
				return f.Kind
			}
		}
		return ""
	}
	for _, e := range events {
		if e.At > at {
			break
		}
		// The value of a lock of Do is not known, so its keys have no number.
		ours := e.Client == l.Client && e.Key == l.Key && (e.Op == l.Op || e.Op == 0)
		switch {
		case e.Kind == history.Stored && ours:
			if kind := lost(e.Node, e.At); kind != "" {
				return kind
			}
			had[e.Node] = span{e.At, e.Until}
		case e.Key == l.Key && (e.Kind == history.Stored || e.Kind == history.Removed && ours):
			if kind := lost(e.Node, e.At); kind != "" {
				return kind
			}
			delete(had, e.Node)
		}
	}
	for node := range p.Nodes {
		if kind := lost(node+1, at); kind != "" {
			return kind
		}
	}
	return ""
}

// askedAt is when the lock was asked for.
func askedAt(events []history.Event, l history.Lock) time.Duration {
	for _, e := range events {
		if e.Kind == history.Asked && e.Client == l.Client && e.Op == l.Op {
			return e.At
		}
	}
	return l.Asked
}
