package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// The rules about waiting learn from a client's event that it waits, and from the nodes'
// answers that it has queue entries.

type opID struct{ client, op int }

// waiters lists the operations that wait for one key, in the order in which they asked.
type waiters struct {
	list  []opID
	since time.Duration // since when there has always been a waiter
}

func (q *waiters) join(id opID, at time.Duration) {
	if len(q.list) == 0 {
		q.since = at
	}
	q.list = append(q.list, id)
}

func (q *waiters) leave(gone func(opID) bool) { q.list = slices.DeleteFunc(q.list, gone) }

func (q *waiters) has(client int) bool {
	return slices.ContainsFunc(q.list, func(id opID) bool { return id.client == client })
}

// first returns the client's operation that has the queue entries. The client's others wait
// behind it in the local queue.
func (q *waiters) first(client int) (id opID, any bool) {
	i := slices.IndexFunc(q.list, func(id opID) bool { return id.client == client })
	if i < 0 {
		return opID{}, false
	}
	return q.list[i], true
}

// follow updates the waiters by an event, and returns those of its key.
func follow(all map[string]*waiters, e history.Event) *waiters {
	q := all[e.Key]
	if q == nil {
		q = &waiters{}
		all[e.Key] = q
	}
	id := opID{e.Client, e.Op}
	switch e.Kind {
	case history.Asked:
		if e.Text == waits {
			q.join(id, e.At)
		}
	case history.Granted, history.Denied:
		q.leave(func(other opID) bool { return other == id })
	case history.Died, history.Closed:
		for _, q := range all {
			q.leave(func(other opID) bool { return other.client == e.Client })
		}
	}
	return q
}

// quiet reports whether nothing can have delayed anybody's turn by the time of the event:
// there has been no fault, or clients want the key only when nothing fails any more.
func (p Plan) quiet(e history.Event) bool {
	if strings.HasPrefix(e.Key, trialKey) {
		return false
	}
	if strings.HasPrefix(e.Key, lineKey) {
		return e.Key == lineKey // each troubledKey has a trouble
	}
	for i, f := range p.Faults {
		if f.At <= e.At && !slices.Contains(p.Config.Without, i+1) {
			return false
		}
	}
	return true
}

// calm returns from when on nothing fails any more, and nobody waits for a dead connection.
func (p Plan) calm() (from time.Duration) {
	for i, f := range p.Faults {
		if !slices.Contains(p.Config.Without, i+1) {
			from = max(from, f.At+f.For+settled)
		}
	}
	if p.Guard > 0 && from > 0 {
		from += 2 * (p.Guard + 2*time.Second)
	}
	return from
}
