package sim

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// lost looks for a fault by which a node lost the key of one of the violation's locks, or a
// part of its ttl, before the violation. It returns the first Kind that why returns for
// such a fault, or "".
func (p Plan) lost(events []history.Event, v history.Violation, why func(FaultPlan) Kind) Kind {
	for _, l := range v.Locks {
		if kind := p.lostOf(events, l, v.At, why); kind != "" {
			return kind
		}
	}
	return ""
}

// lostOf is lost for one lock.
func (p Plan) lostOf(events []history.Event, l history.Lock, at time.Duration, why func(FaultPlan) Kind) Kind {
	type span struct{ from, to time.Duration }
	had := map[int]span{} // by node
	lost := func(node int, by time.Duration) Kind {
		s := had[node]
		for i, f := range p.Faults {
			if f.Node != node-1 || !f.robs(s.from, s.to, by) || slices.Contains(p.Config.Without, i+1) {
				continue
			}
			if kind := why(f); kind != "" {
				return kind
			}
		}
		return ""
	}
	for _, e := range events {
		if e.At > at {
			break
		}
		// The value of a lock of Do is not known, so the events of its keys have no Op.
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

// robs reports whether the fault took away, at by or earlier, a key that the node had
// between from and to.
func (f FaultPlan) robs(from, to, by time.Duration) bool {
	when := f.At
	switch f.Kind {
	case FailBack, LateInfo: // the node is a replica until then
		when += f.For
	case Deposed, DeposedLong: // the keys that the old master has and still grants
		return from <= f.At+f.For && when < to && when <= by
	case Excursion: // or the keys that the visitor has
		if back := when + f.For; from <= back && back < to && back <= by {
			return true
		}
	case Amnesia, FailOver, JumpAhead, EmptyPromotion, Spare:
	default:
		return false
	}
	return from <= when && when < to && when <= by
}
