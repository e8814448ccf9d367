// Package history records what clients believed and what masters did in a run,
// and judges it: did anybody hold a key that somebody else held?
//
// A run is a simulation in virtual time or a storm over real servers; both write
// the same [Event]s and are judged by the same rules. All times are true time,
// since the run began, whatever the clocks of its clients say.
package history

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kind says what an [Event] tells.
type Kind string

// What clients do and learn. Client, Op and Key are set.
const (
	Asked       Kind = "asked"        // Acquire or TryAcquire was called
	Granted     Kind = "granted"      // and returned a lock that is valid until Until
	Denied      Kind = "denied"       // or an error
	Extending   Kind = "extending"    // Extend was called
	Extended    Kind = "extended"     // and returned nil; validity now ends at Until
	NotExtended Kind = "not extended" // or an error
	Renewed     Kind = "renewed"      // a look at the lock found it valid until Until, later than before
	Releasing   Kind = "releasing"    // Release was called; validity would have lasted until Until
	Released    Kind = "released"     // and returned, with Err or without
	Ended       Kind = "ended"        // the lock's context is done, because of Err; Until was its end of validity
)

// What becomes of clients and masters. Client or Node is set.
const (
	Paused  Kind = "paused" // the client stands still
	Resumed Kind = "resumed"
	Died    Kind = "died"   // the client's process ended; it holds nothing any more
	Closed  Kind = "closed" // the same, but it releases what it held
	Voted   Kind = "voted"  // Node executed a command of Client's Op; Text is what it said
	Stored  Kind = "stored" // on Node, Key belongs to Client's Op until Until, if nothing else happens
	Removed Kind = "removed"
	Fault   Kind = "fault" // Text has begun and lasts until Until, or was over at once if Until is not after At
)

// Event is one thing that happened.
type Event struct {
	At     time.Duration `json:"at"`
	Kind   Kind          `json:"kind"`
	Client int           `json:"client,omitempty"` // counted from 1; 0 is nobody
	Node   int           `json:"node,omitempty"`   // counted from 1; 0 is none
	Server int           `json:"server,omitempty"` // behind Node if not its own, counted from 1 with the nodes' own first; 0 is its own
	Op     int           `json:"op,omitempty"`     // which acquisition of the client, from 1; it also names the lock
	Key    string        `json:"key,omitempty"`
	Until  time.Duration `json:"until,omitempty"`
	Token  int64         `json:"token,omitempty"` // the lock's fencing token; 0 is none, or not known
	Err    string        `json:"err,omitempty"`
	Text   string        `json:"text,omitempty"`
}

func (e Event) String() string {
	s := fmt.Sprintf("%v %s", e.At, e.Kind)
	if e.Client > 0 {
		s += fmt.Sprintf(" client %d", e.Client)
	}
	if e.Op > 0 {
		s += fmt.Sprintf(" #%d", e.Op)
	}
	if e.Node > 0 {
		s += fmt.Sprintf(" node %d", e.Node)
	}
	if e.Server > 0 {
		s += fmt.Sprintf(" server %d", e.Server)
	}
	if e.Key != "" {
		s += fmt.Sprintf(" key %q", e.Key)
	}
	if e.Until > 0 {
		s += fmt.Sprintf(" until %v", e.Until)
	}
	if e.Token > 0 {
		s += fmt.Sprintf(" token %d", e.Token)
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Err != "" {
		s += ": " + e.Err
	}
	return s
}

// Log collects events as they happen. The zero Log is empty and ready; its
// methods are safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	events []Event
}

// Add appends an event.
func (l *Log) Add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// Events returns what was added, in the order of time. Of what happened at the same
// instant the clients' comes first, in the order of clients and their operations,
// then the nodes', for each node as it was added.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := slices.Clone(l.events)
	Sort(events)
	return events
}

// Sort puts events in the order of [Log.Events].
func Sort(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		order := cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Node, b.Node))
		if order == 0 && a.Node == 0 {
			order = cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Op, b.Op))
		}
		return order
	})
}
