package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/history"
	"github.com/quorumlock/redlock/quorum"
)

// stuck is how long a key may be free on a majority of nodes and nobody get it of those
// who wait: a waiter looks after as long again as it has waited, at most 15 s; whoever is
// woken by that, and does not come, is waited for a second; and what the dead had asked
// for lives for a ttl.
const stuck = 15*time.Second + time.Second + longest

// handover is how long it may take where nothing disturbs those who wait: a round trip or
// two, and less than it takes until a waiter looks for the first time. So this is what a
// release that wakes nobody breaks.
const handover = 500 * time.Millisecond

// limit is stuck by the clock of the fastest of those who wait: the others need not look.
func (p Plan) limit(key string, q *waiters) time.Duration {
	if key == lineKey {
		return handover
	}
	rate := 0.0
	for _, id := range q.list {
		rate = max(rate, p.Clients[id.client-1].Rate)
	}
	return time.Duration(float64(stuck) / min(rate, 1))
}

// checkStuck finds keys that nobody got though somebody waited and nothing failed since
// calm: they were free on a majority of nodes, but for what those who wait have tried
// in vain.
func (p Plan) checkStuck(events []history.Event, calm, end time.Duration) (found []history.Violation) {
	type state struct {
		free     []time.Duration // by node, since when nobody else has the key
		last     time.Duration   // when somebody last got it, or had it
		reported bool            // in this stretch
	}
	all, states := map[string]*waiters{}, map[string]*state{}
	holds := map[opID]time.Duration{}
	for _, l := range history.Locks(events) {
		holds[opID{l.Client, l.Op}] = l.End()
	}
	judge := func(key string, at time.Duration) {
		q, s := all[key], states[key]
		if q == nil || s == nil || len(q.list) == 0 || s.reported {
			return
		}
		free := slices.Sorted(slices.Values(s.free))
		since := max(calm, q.since, s.last, free[quorum.Size(p.Nodes)-1])
		if limit := p.limit(key, q); since < at-limit {
			s.reported = true
			found = append(found, history.Violation{
				At: since + limit, Rule: Stuck, Key: key,
				Text: fmt.Sprintf("client %d's #%d waits for %q, which has been free since %v", q.list[0].client, q.list[0].op, key, since),
			})
		}
	}
	for _, e := range events {
		if e.Kind == history.Died || e.Kind == history.Closed {
			for key := range all {
				judge(key, e.At)
			}
		}
		judge(e.Key, e.At)
		q := follow(all, e)
		s := states[e.Key]
		if s == nil {
			s = &state{free: make([]time.Duration, p.Nodes)}
			states[e.Key] = s
		}
		switch e.Kind {
		case history.Stored:
			if e.Op > 0 || !q.has(e.Client) {
				s.free[e.Node-1] = e.Until
			}
		case history.Removed:
			s.free[e.Node-1] = min(s.free[e.Node-1], e.At)
		case history.Granted:
			s.last, s.reported = max(s.last, e.At, holds[opID{e.Client, e.Op}]), false
		case history.Ended, history.Released: // of a Do it is not known before
			s.last = max(s.last, e.At)
		}
	}
	for key := range all {
		judge(key, end)
	}
	slices.SortStableFunc(found, func(a, b history.Violation) int { return strings.Compare(a.Key, b.Key) })
	return found
}
