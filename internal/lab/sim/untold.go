package sim

import (
	"strings"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// dates reports whether a command writes an identity record with a date: since when the
// server has been there.
func dates(command []string) bool {
	return command[0] == "SET" && command[1] == recordKey && !strings.HasSuffix(command[2], " 0")
}

// sight is a client and a server that it may know.
type sight struct{ client, server int }

// sees records which client knows which server. A client that sends a server anything but a
// question for its identity has read the answer to the last such question. w.mu is held.
func (w *world) sees(client, server int, asks bool) {
	s, now := sight{client, server}, w.now()
	if asks {
		w.questions[s] = now
	} else if asked, ok := w.questions[s]; ok && asked < now {
		if _, known := w.plan.known[s]; !known {
			w.plan.known[s] = now
		}
	}
}

// dated is the text of the event that a client has dated an identity record.
const dated = "the identity record says since when"

// untold reports whether a client that got a lock could not know that the fault had moved
// the address of a node. It did not meet the two servers behind the address one after the
// other, and when it last asked the server, the identity record had no date yet.
func (p Plan) untold(events []history.Event, l history.Lock, f FaultPlan) bool {
	to, since := f.Server, f.At
	if f.Kind == Excursion && l.Granted >= f.At+f.For {
		to, since = p.serves(f.Node, f.At+f.For), f.At+f.For
	}
	before, met, datedAt := -1, history.Never, history.Never
	for _, e := range events {
		switch {
		case e.Node != f.Node+1 || e.At > l.Granted:
		case e.Kind == history.Fault && e.Text == dated && e.At >= since && p.serverOf(e) == to:
			datedAt = min(datedAt, e.At)
		case e.Kind != history.Voted || e.Client != l.Client:
		case e.At < since || p.serverOf(e) != to:
			if met == history.Never {
				before = p.serverOf(e)
			}
		default:
			met = min(met, e.At)
		}
	}
	if known, ok := p.known[sight{l.Client - 1, before}]; met == history.Never || ok && known < since && before != to {
		return false
	}
	return datedAt > max(met, l.Granted-believed)
}

// serverOf returns the server that an event is about.
func (p Plan) serverOf(e history.Event) int {
	if e.Server > 0 {
		return e.Server - 1
	}
	return e.Node - 1
}
