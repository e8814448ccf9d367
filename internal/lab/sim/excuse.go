package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Excuse is a violation of something that Redlock does not promise.
type Excuse struct {
	history.Violation
	Kind Kind // of the fault that explains it, or one of the gaps below
}

// The gaps in the promise of the restart guard; see docs/safety.md.
const (
	// Newcomer is the gap of a client that meets a node after an independent server has
	// taken its address, or given it back. Until a client that saw both servers dates the
	// identity record, the newcomer cannot know that there was another.
	Newcomer Kind = "newcomer"
	// ClocksApart is the gap of clients' clocks that disagree by at least
	// RestartGuard − NodeTimeout: where nodes forget fences, the order of tokens rests on the
	// clocks.
	ClocksApart Kind = "clocks-apart"
)

// judge sorts the violations by whether a fault beyond Redlock's promises explains them.
func (r *Result) judge(found []history.Violation) {
	slices.SortStableFunc(found, func(a, b history.Violation) int { return cmp.Compare(a.At, b.At) })
	overlaps := map[string]Excuse{} // the first one that is excused, by key
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
		// Where holds overlap there is no order of operations either. The model may name
		// the earlier hold of the two.
		first, any := overlaps[v.Key]
		var why Kind
		switch {
		case v.Rule != history.Model || len(v.Locks) == 0:
		case any && (v.At >= first.At || v.Locks[0] == first.Locks[0]):
			why = first.Kind
		default:
			why = excuseDead(r.Plan, r.Events, v)
		}
		if why != "" {
			r.Excused = append(r.Excused, Excuse{Violation: v, Kind: why})
		} else {
			r.Violations = append(r.Violations, v)
		}
	}
}

// excuse returns the fault beyond Redlock's promises that explains a violation, or "". Two
// holders, or a lock that is not covered, are explained by a clock of the earlier holder's
// client that is slower than its drift allows for, or by a node that lost a key of one of
// the locks too early. With the restart guard such a node explains no second holder, but
// still a lock that is not covered.
func excuse(p Plan, events []history.Event, v history.Violation) Kind {
	if v.Rule == history.Fencing {
		return excuseToken(p, events, v)
	}
	if !slices.Contains([]string{history.Exclusion, history.Context, Coverage}, v.Rule) {
		return ""
	}
	first := v.Locks[0]
	if c := p.Clients[first.Client-1]; c.Rate < 1-c.Drift.Factor {
		// In true time its keys live only for as long as it believes by its own clock.
		asked := askedAt(events, first)
		if v.Rule == Coverage || v.At >= asked+time.Duration(float64(first.Until-asked)*c.Rate) {
			return SlowClient
		}
	}
	if p.Guard == 0 || v.Rule == Coverage {
		return p.lost(events, v, func(f FaultPlan) Kind { return f.Kind })
	}
	return p.lost(events, v, func(f FaultPlan) Kind { return p.gap(events, v, f) })
}

// excuseDead explains a violation of the model: a client got a lock that another one had
// when it died. The dead client holds nothing any more, so the holds do not overlap, but in
// the model its keys live on.
func excuseDead(p Plan, events []history.Event, v history.Violation) Kind {
	died := map[int]time.Duration{}
	for _, e := range events {
		if e.Kind == history.Died {
			died[e.Client] = e.At
		}
	}
	next := v.Locks[0]
	for _, l := range history.Locks(events) {
		at, dead := died[l.Client]
		if !dead || l.Key != v.Key || l.Releasing != at || at > v.At || l.Until <= next.Asked {
			continue
		}
		overlap := history.Violation{At: v.At, Rule: history.Exclusion, Key: v.Key, Locks: []history.Lock{l, next}}
		if kind := excuse(p, events, overlap); kind != "" {
			return kind
		}
	}
	return ""
}

// gap returns why the guard did not see that a node forgot, or "".
func (p Plan) gap(events []history.Event, v history.Violation, f FaultPlan) Kind {
	switch f.Kind {
	case JumpAhead:
		return JumpAhead
	case DeposedLong:
		return DeposedLong
	case Excursion, Spare:
		for _, l := range v.Locks {
			if p.untold(events, l, f) {
				return Newcomer
			}
		}
	case Amnesia, AmnesiaOK:
		// Uptime is by the server's clock.
		for i, jump := range p.Faults {
			if jump.Kind == JumpAhead && jump.Node == f.Node && f.At <= jump.At && jump.At <= v.At && !slices.Contains(p.Config.Without, i+1) {
				return JumpAhead
			}
		}
	}
	return ""
}

// excuseToken explains a token that is not above that of an earlier lock: a node that voted
// for the earlier one may have forgotten its fence since. Where no node forgets, tokens
// grow whatever the clocks say. Where some do, tokens need the guard, and clocks that
// agree.
func excuseToken(p Plan, events []history.Event, v history.Violation) Kind {
	var since time.Duration
	switch {
	case len(v.Locks) == 2 && v.Locks[0].Client == v.Locks[1].Client && v.Locks[0].Op == v.Locks[1].Op:
		return "" // a lock's own token changed
	case len(v.Locks) == 2:
		since = askedAt(events, v.Locks[0])
	}
	for i, f := range p.Faults {
		if !slices.Contains(forgetful, f.Kind) || f.At > v.At || f.At+f.For < since || slices.Contains(p.Config.Without, i+1) {
			continue
		}
		if p.Guard == 0 {
			return f.Kind
		}
		if p.apart(v.At) {
			return ClocksApart
		}
		if gap := p.gap(events, v, f); gap != "" {
			return gap
		}
	}
	return ""
}

// apart reports whether two clients that had begun by then had clocks so far apart that
// tokens need not grow.
func (p Plan) apart(at time.Duration) bool {
	var timeout time.Duration
	var low, high [2]time.Duration // on the clocks, at the start of the run and at that time
	for i, c := range p.Clients {
		timeout = max(timeout, c.NodeTimeout)
		if c.From > at {
			continue
		}
		for t, passed := range [2]time.Duration{0, at} {
			shows := c.Offset + time.Duration((c.Rate-1)*float64(passed))
			if i == 0 {
				low[t], high[t] = shows, shows
			}
			low[t], high[t] = min(low[t], shows), max(high[t], shows)
		}
	}
	return max(high[0]-low[0], high[1]-low[1]) >= p.Guard-timeout
}

func askedAt(events []history.Event, l history.Lock) time.Duration {
	for _, e := range events {
		if e.Kind == history.Asked && e.Client == l.Client && e.Op == l.Op {
			return e.At
		}
	}
	return l.Asked
}
