package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/scene"
)

// The rules of scenarios, in addition to those of package history and to Owner and Fence.
const (
	StaleWrite = "stale write" // the protected resource accepts no write of an earlier holder
	Semaphore  = "semaphore"   // no more clients have a slot than there are slots
)

// judge looks for violations while a scenario goes on.
type judge struct {
	st    *Stage
	found map[string]bool // what was shown
}

func newJudge(st *Stage) *judge { return &judge{st: st, found: map[string]bool{}} }

// remembered is for how long events are judged again. Locks that are held longer are judged for as long
// as they are held.
const remembered = time.Minute

// look judges what has happened since it last looked. All other goroutines of the bubble are blocked
// meanwhile, so it takes no mutex of the world.
func (j *judge) look() {
	w := j.st.w
	w.checkVotes()
	w.votes = nil
	if events := w.show.recent(remembered); len(events) > 0 {
		if w.slots > 0 {
			w.violations = append(w.violations, tooMany(events, w.slots)...)
		} else {
			w.violations = append(w.violations, history.Check(events)...)
			w.violations = append(w.violations, history.CheckContexts(events)...)
		}
	}
	for _, v := range w.violations {
		if j.isNew(v) {
			j.show(v)
		}
	}
	w.violations = slices.DeleteFunc(w.violations, func(v history.Violation) bool {
		return v.Rule != Goroutines && v.Rule != Panics && v.Rule != Harness
	})
}

// isNew reports whether the violation was not shown yet. One overlap of holds breaks several rules, of
// which the first says enough.
func (j *judge) isNew(v history.Violation) bool {
	id := v.Rule + v.Text
	known := j.found[id]
	j.found[id] = true
	if v.Rule == StaleWrite {
		return !known
	}
	for i, l := range v.Locks {
		lock := fmt.Sprintf("client %d #%d", l.Client, l.Op)
		// A later overlap with the same first holder is another one; the model may name either lock.
		known = known || j.found[lock] && (i > 0 || v.Rule == history.Model || v.Rule == history.Context)
		defer func() { j.found[lock] = true }()
	}
	return !known
}

func (j *judge) show(v history.Violation) {
	excused, remedy := j.excuse(v)
	j.st.w.show.line(violated(v, excused, remedy))
}

// violated returns a violation as a viewer sees it.
func violated(v history.Violation, excused, remedy string) scene.Violation {
	line := scene.Violation{Rule: v.Rule, Text: v.Text, Clients: []int{}, Locks: []scene.Hold{}, Excused: excused, Remedy: remedy}
	for _, l := range v.Locks {
		if !slices.Contains(line.Clients, l.Client) {
			line.Clients = append(line.Clients, l.Client)
		}
		line.Locks = append(line.Locks, scene.Hold{Client: l.Client, Op: l.Op, From: l.Granted, Until: l.End()})
	}
	return line
}

// excuse says why Redlock does not promise what was violated, and what helps. It looks for an action of
// a kind that Redlock does not promise to survive, since the first of the locks was asked for.
func (j *judge) excuse(v history.Violation) (excused, remedy string) {
	s := j.st.s
	switch v.Rule {
	case Semaphore:
		return "This is a naive semaphore, which is not part of the library. Two majorities share a master, but a master with several slots votes for both.",
			"A lock of its own for each slot: a client tries the locks in turn, and has a slot if it has one of the locks."
	case StaleWrite:
		return "A lock cannot stop a client that writes after its lock has ended.",
			"Fencing: each lock has a higher token than all before it, and the resource refuses a lower one."
	case history.Exclusion, history.Context, history.Model, history.Fencing, Owner, Fence:
	default:
		return "", ""
	}
	var since time.Duration
	clients := map[int]bool{}
	for i, l := range v.Locks {
		if clients[l.Client] = true; i == 0 || l.Asked < since {
			since = l.Asked
		}
	}
	did := func(verb scenario.Verb) bool {
		return slices.ContainsFunc(j.st.done, func(a scenario.Action) bool {
			if verb == scenario.Suspend { // its clock stays behind for ever
				return a.Verb == verb && clients[a.Client]
			}
			return a.Verb == verb && a.At >= since-s.TTL && a.At <= v.At
		})
	}
	switch {
	case did(scenario.Forget) && !s.Guard:
		return "A master forgot a lock that was still held, and granted it again. Redlock promises exclusion only while masters remember.",
			"RestartGuard: the votes of a master that has restarted do not count until all locks from before are over."
	case did(scenario.Ahead):
		return "A master's clock was set forward, so that its keys expired early. Redlock promises exclusion only if clocks run at about the same speed.",
			"Let clocks be slewed, not stepped."
	case did(scenario.Suspend):
		return "A machine slept, and its monotonic clock stood still. Its client believes in its lock for as much longer.",
			"Fencing refuses what the client writes then."
	}
	return "", ""
}

// tooMany finds times at which more clients have a slot than there are slots.
func tooMany(events []history.Event, slots int) (found []history.Violation) {
	locks := history.Locks(events)
	for i, l := range locks {
		var held []history.Lock
		for _, other := range locks[:i+1] {
			if other.End() > l.Granted {
				held = append(held, other)
			}
		}
		if len(held) <= slots {
			continue
		}
		var clients []string
		for _, h := range held {
			clients = append(clients, fmt.Sprint(h.Client))
		}
		found = append(found, history.Violation{
			At: l.Granted, Rule: Semaphore, Key: l.Key, Locks: held,
			Text: fmt.Sprintf("%d clients have one of %d slots: %s", len(held), slots, strings.Join(clients, ", ")),
		})
	}
	return found
}
