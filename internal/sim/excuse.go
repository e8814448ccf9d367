package sim

import (
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
	slices.SortStableFunc(found, func(a, b history.Violation) int { return int(a.At - b.At) })
	locks := history.Locks(r.Events)
	overlaps := map[string]Kind{} // keys on which holds are excused to overlap
	for _, v := range found {
		if why := excuse(r.Plan, locks, v); why != "" {
			r.Excused = append(r.Excused, Excuse{Violation: v, Kind: why})
			if v.Rule == history.Exclusion {
				overlaps[v.Key] = why
			}
		}
	}
	for _, v := range found {
		switch why := overlaps[v.Key]; {
		case excuse(r.Plan, locks, v) != "":
		case v.Rule == history.Model && why != "":
			// Where holds overlap there is no order either.
			r.Excused = append(r.Excused, Excuse{Violation: v, Kind: why})
		default:
			r.Violations = append(r.Violations, v)
		}
	}
}

// excuse says which fault beyond Redlock's promises explains that two held a lock,
// or that a lock was not covered; or nothing. Either the clock of the earlier
// holder's client is slower than its drift allows for, or a node forgot its keys, or
// let them expire early, between the time when that lock was asked for and the
// violation.
func excuse(p Plan, locks []history.Lock, v history.Violation) Kind {
	if !slices.Contains([]string{history.Exclusion, history.Context, Coverage}, v.Rule) {
		return ""
	}
	first := v.Locks[0]
	if c := p.Clients[first.Client-1]; c.Rate < 1-c.Drift.Factor {
		return SlowClient
	}
	since := v.At
	for _, l := range locks {
		if l.Client == first.Client && l.Op == first.Op {
			since = l.Asked
		}
	}
	return p.forgot(since, v.At)
}

// forgot is the kind of the first fault in [from, to] by which a node lost keys
// before their time.
func (p Plan) forgot(from, to time.Duration) Kind {
	for i, f := range p.Faults {
		over := f.At + f.For
		if f.Kind == JumpAhead {
			over = f.At
		}
		lost := f.Kind == Amnesia || f.Kind == JumpAhead
		if lost && f.At <= to && over >= from && !slices.Contains(p.Config.Without, i+1) {
			return f.Kind
		}
	}
	return ""
}
