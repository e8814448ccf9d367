package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// The rule Starvation: with Fair, and where nothing fails, no client gets a key ahead of a
// waiter that had an entry in its queue on all nodes before the client came. A newcomer's
// ticket is above the highest of any node that it has heard from, and a node grants a free
// key to the lowest ticket alone.
//
// Clocks make exceptions. A newcomer whose clock is behind has too low a ticket until it
// has heard of a higher one; from then on it goes by the other clock. So each client whose
// clock is not the one furthest ahead may overtake a waiter maxOvertakes times. A waiter
// that finds out that its own clock is behind takes a higher ticket, at most maxRaises
// times in one wait. Clients that came in between are ahead of it then, so its time counts
// from when all nodes had its last ticket.
//
// A client knows another's clock only as exactly as the newest ticket that it has heard of
// is old: a round trip for the other to queue, and one for its own question. So two clients
// that come within that time, sameTime, count as coming at the same time.
const (
	maxOvertakes = 1
	maxRaises    = 3
	roundTrip    = 10 * time.Millisecond // more than one takes when nothing fails
	sameTime     = 2 * roundTrip
)

// behind reports whether the clock of some client that has begun to run is ahead of this
// client's.
func (p Plan) behind(client int, at time.Duration) bool {
	shows := func(c ClientPlan) time.Duration { return c.Offset + time.Duration(c.Rate*float64(at)) }
	own := shows(p.Clients[client-1])
	return slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return c.From <= at && shows(c) > own })
}

// queueState is what is known of a waiter's queue entries.
type queueState struct {
	ticket int64
	raises int
	nodes  map[int]bool
	since  time.Duration // since when all nodes have had the ticket; Never: they have not
	over   map[int]int   // how often each client has overtaken the waiter
}

// ticketOf returns the ticket of the queue entry that a node's answer confirms, or 0.
func ticketOf(e history.Event) (ticket int64) {
	_, at, found := strings.Cut(e.Text, stands)
	if e.Kind != history.Voted || !found {
		return 0
	}
	number, _, _ := strings.Cut(at, ",")
	ticket, _ = strconv.ParseInt(number, 10, 64)
	return ticket
}

// entries identifies a client's entries in the queue of a key.
type entries struct {
	key    string
	client int
}

// fairness follows which clients have entries in which queues.
type fairness struct {
	plan        Plan
	waiting     map[string]*waiters
	asked       map[opID]time.Duration
	queueStates map[opID]*queueState
	// taken holds the ticket of each client's queue entries, and since when. A waiter takes
	// the entries over from another goroutine of its process.
	taken map[entries]taken
	found []history.Violation
}

type taken struct {
	ticket int64
	since  time.Duration
}

// checkStarved finds waiters that were overtaken against the rule Starvation. It skips
// events that are not quiet: those after faults that can matter to the key. It skips runs
// with clocks slower than any that the library allows for: these fall behind again after
// each wait.
func (p Plan) checkStarved(events []history.Event, quiet func(e history.Event) bool) []history.Violation {
	if !p.Fair || slices.Contains(p.Kinds, SlowClient) {
		return nil
	}
	f := &fairness{plan: p, waiting: map[string]*waiters{}, asked: map[opID]time.Duration{}, queueStates: map[opID]*queueState{}, taken: map[entries]taken{}}
	for _, e := range events {
		if e.Kind == history.Asked {
			f.asked[opID{e.Client, e.Op}] = e.At
		}
		q := follow(f.waiting, e)
		switch ticket := ticketOf(e); {
		case !quiet(e):
		case ticket > 0:
			f.stood(e, q, ticket)
		case e.Kind == history.Granted && e.Text != history.ByHandle:
			f.granted(e, q)
		}
	}
	return f.found
}

func (f *fairness) starved(e history.Event, format string, args ...any) {
	f.found = append(f.found, history.Violation{At: e.At, Rule: Starvation, Key: e.Key, Text: fmt.Sprintf(format, args...)})
}

// stood records that a node has a client's entry in its queue.
func (f *fairness) stood(e history.Event, q *waiters, ticket int64) {
	if at := (entries{e.Key, e.Client}); ticket != f.taken[at].ticket {
		f.taken[at] = taken{ticket, e.At}
	}
	first, any := q.first(e.Client)
	if !any {
		return // the waiter has the key by now, or has given up
	}
	s := f.queueStates[first]
	if s == nil {
		s = &queueState{ticket: ticket, nodes: map[int]bool{}, since: history.Never, over: map[int]int{}}
		f.queueStates[first] = s
	}
	if ticket > s.ticket {
		s.ticket, s.since = ticket, history.Never
		clear(s.nodes)
		if s.raises++; s.raises == maxRaises+1 {
			f.starved(e, "client %d's #%d took a higher ticket %d times", first.client, first.op, s.raises)
		}
	}
	if ticket == s.ticket { // else this answers an earlier request
		s.nodes[e.Node] = true
	}
	if len(s.nodes) == f.plan.Nodes && s.since == history.Never {
		s.since = e.At
	}
}

// granted finds the waiters that a grant has overtaken.
func (f *fairness) granted(e history.Event, q *waiters) {
	came := f.asked[opID{e.Client, e.Op}]
	if had, any := f.taken[entries{e.Key, e.Client}]; any {
		came = min(came, had.since)
		delete(f.taken, entries{e.Key, e.Client})
	}
	most := 0
	if f.plan.behind(e.Client, came) {
		most = maxOvertakes
	}
	for _, other := range q.list {
		s := f.queueStates[other]
		if s == nil || other.client == e.Client || came-s.since < sameTime {
			continue
		}
		if s.over[e.Client]++; s.over[e.Client] == most+1 {
			f.starved(e, "client %d's #%d stood in the queue of all nodes at %v, and was overtaken by client %d's #%d, which came at %v", other.client, other.op, s.since, e.Client, e.Op, came)
		}
	}
}
