package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/history"
)

// With Fair, and where nothing fails, nobody gets a key ahead of somebody who stood in its
// queue on all nodes before he came: a newcomer's ticket is above the highest of any node
// that he has heard, and a node grants a key that is free to the lowest ticket alone. Save
// for clocks: by a clock that is behind, a newcomer's ticket is too low until he has
// heard of another. So each client whose clock is not the one furthest ahead may overtake
// somebody maxOvertakes times, and no more often: it goes by the other clock from then on.
//
// It counts from when he stood there by his last ticket. Who finds out that his clock is
// behind takes a higher one, and those who came in between are ahead of him then; but
// not more often than maxRaises in one wait. A client knows another's clock no better than
// the newest ticket that it has heard of was old by then: a round trip for the other to queue,
// and one for its own question. So two clients that come within that came at the same time.
const (
	maxOvertakes = 1
	maxRaises    = 3
	roundTrip    = 10 * time.Millisecond // more than it takes when nothing fails
	sameTime     = 2 * roundTrip
)

// behind tells that some client's clock is ahead of this one's, of those that have run.
func (p Plan) behind(client int, at time.Duration) bool {
	shows := func(c ClientPlan) time.Duration { return c.Offset + time.Duration(c.Rate*float64(at)) }
	own := shows(p.Clients[client-1])
	return slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return c.From <= at && shows(c) > own })
}

// standing is what is known of somebody's place in a queue.
type standing struct {
	ticket int64
	raises int
	nodes  map[int]bool
	since  time.Duration // when the last node had it; Never before
	over   map[int]int   // how often each client has overtaken him
}

// ticketOf is the ticket by which whoever was answered so has a place, 0 for none.
func ticketOf(e history.Event) (ticket int64) {
	_, at, found := strings.Cut(e.Text, stands)
	if e.Kind != history.Voted || !found {
		return 0
	}
	number, _, _ := strings.Cut(at, ",")
	ticket, _ = strconv.ParseInt(number, 10, 64)
	return ticket
}

// place is a client's in the queue of a key.
type place struct {
	key    string
	client int
}

// fairness follows who stands in which queue.
type fairness struct {
	plan    Plan
	waiting map[string]*waiters
	asked   map[opID]time.Duration
	stand   map[opID]*standing
	// taken is since when a client has its place, and by which ticket: whoever waits takes
	// it over from another goroutine of his process.
	taken map[place]taken
	found []history.Violation
}

type taken struct {
	ticket int64
	since  time.Duration
}

// checkStarved finds who was overtaken as nobody may be. What is not quiet is left out:
// there were faults that can matter to the key. So are runs with clocks that are slower
// than any that the library allows for: these fall behind again after each wait.
func (p Plan) checkStarved(events []history.Event, quiet func(e history.Event) bool) []history.Violation {
	if !p.Fair || slices.Contains(p.Kinds, SlowClient) {
		return nil
	}
	f := &fairness{plan: p, waiting: map[string]*waiters{}, asked: map[opID]time.Duration{}, stand: map[opID]*standing{}, taken: map[place]taken{}}
	for _, e := range events {
		if e.Kind == history.Asked {
			f.asked[opID{e.Client, e.Op}] = e.At
		}
		q := follow(f.waiting, e)
		switch ticket := ticketOf(e); {
		case !quiet(e):
		case ticket > 0:
			f.stood(e, q, ticket)
		case e.Kind == history.Granted:
			f.granted(e, q)
		}
	}
	return f.found
}

func (f *fairness) starved(e history.Event, format string, args ...any) {
	f.found = append(f.found, history.Violation{At: e.At, Rule: Starvation, Key: e.Key, Text: fmt.Sprintf(format, args...)})
}

// stood takes it that a node has somebody in its queue.
func (f *fairness) stood(e history.Event, q *waiters, ticket int64) {
	if at := (place{e.Key, e.Client}); ticket != f.taken[at].ticket {
		f.taken[at] = taken{ticket, e.At}
	}
	first, any := q.first(e.Client)
	if !any {
		return // he has got it meanwhile, or has given up
	}
	s := f.stand[first]
	if s == nil {
		s = &standing{ticket: ticket, nodes: map[int]bool{}, since: history.Never, over: map[int]int{}}
		f.stand[first] = s
	}
	if ticket > s.ticket {
		s.ticket, s.since = ticket, history.Never
		clear(s.nodes)
		if s.raises++; s.raises == maxRaises+1 {
			f.starved(e, "client %d's #%d took a higher ticket %d times", first.client, first.op, s.raises)
		}
	}
	if ticket == s.ticket { // and no answer to an earlier one
		s.nodes[e.Node] = true
	}
	if len(s.nodes) == f.plan.Nodes && s.since == history.Never {
		s.since = e.At
	}
}

// granted looks whom that has overtaken.
func (f *fairness) granted(e history.Event, q *waiters) {
	came := f.asked[opID{e.Client, e.Op}]
	if had, any := f.taken[place{e.Key, e.Client}]; any {
		came = min(came, had.since)
		delete(f.taken, place{e.Key, e.Client})
	}
	most := 0
	if f.plan.behind(e.Client, came) {
		most = maxOvertakes
	}
	for _, other := range q.list {
		s := f.stand[other]
		if s == nil || other.client == e.Client || came-s.since < sameTime {
			continue
		}
		if s.over[e.Client]++; s.over[e.Client] == most+1 {
			f.starved(e, "client %d's #%d stood in the queue of all nodes at %v, and was overtaken by client %d's #%d, which came at %v", other.client, other.op, s.since, e.Client, e.Op, came)
		}
	}
}
