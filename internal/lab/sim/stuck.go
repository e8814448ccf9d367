package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/quorum"
)

// stuck is for how long a key may be free on a majority of nodes while clients wait for it
// and none gets it. It is the sum of three times: a waiter looks again after as long as it
// has waited, at most 15 s; a woken waiter that does not come has a second; keys that the
// dead had asked for live for a ttl.
const stuck = 15*time.Second + time.Second + longest

// handover is the same limit where nothing disturbs the waiters. It is more than the round
// trip or two that a hand-over takes, and less than the time until a waiter looks for the
// first time. So a release that wakes nobody exceeds it.
const handover = 500 * time.Millisecond

// limit returns handover for lineKey, and else stuck by the clock of the fastest waiter, as
// it is enough if that one looks.
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

// checkStuck finds keys that nobody got although a client waited and nothing had failed
// since calm. They were free on a majority of nodes, not counting the waiters' own tries
// in vain.
func (p Plan) checkStuck(events []history.Event, calm, end time.Duration) (found []history.Violation) {
	type state struct {
		free     []time.Duration // by node, since when no other client has the key
		last     time.Duration   // when a client last got the key, or had it
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
		case history.Ended, history.Released: // the end of a Do is not known before
			s.last = max(s.last, e.At)
		}
	}
	for key := range all {
		judge(key, end)
	}
	slices.SortStableFunc(found, func(a, b history.Violation) int { return strings.Compare(a.Key, b.Key) })
	return found
}
