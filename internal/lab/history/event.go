// Package history records what the clients and servers of a run did and learned, and judges
// it: did a client hold a key that another one held?
//
// A run is a simulation in virtual time (internal/lab/sim) or a storm over real servers
// (internal/lab/chaos). It adds an [Event] to a [Log] for each call, result, vote and fault.
// All times are true time since the run began, whatever the clients' clocks say.
// [Log.Events] sorts the events, [Locks] derives each client's holds from them, and [Check]
// and [CheckContexts] return the [Violation]s.
//
// Where to look: event.go for the events; lock.go for holds; check.go for exclusion and
// contexts; model.go for the search for an order of the operations, with porcupine;
// fencing.go for tokens.
package history

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Kind is the kind of an [Event].
type Kind string

// The calls and observations of clients. Client, Op and Key are set.
const (
	Asked       Kind = "asked"        // Acquire or TryAcquire was called
	Granted     Kind = "granted"      // the call returned a lock that is valid until Until
	Denied      Kind = "denied"       // the call returned an error
	Extending   Kind = "extending"    // Extend was called
	Extended    Kind = "extended"     // the call returned nil; validity now ends at Until
	NotExtended Kind = "not extended" // the call returned an error
	Renewed     Kind = "renewed"      // the lock was found valid until Until, later than before
	Releasing   Kind = "releasing"    // Release was called; without it validity would have lasted until Until
	Released    Kind = "released"     // the call returned, with Err or without
	Retained    Kind = "retained"     // ReleaseAfter was called, and returned nil: nobody may get the key before Until
	Detached    Kind = "detached"     // Detach returned a handle: the lock has ended here, and its keys live on
	Wrote       Kind = "wrote"        // the client wrote to the protected resource under the lock
	Ended       Kind = "ended"        // the lock's context is done, because of Err; its validity ended at Until
)

// ByHandle is the Text of Asked and Granted if the lock was resumed by a handle.
const ByHandle = "by a handle"

// The fates of clients and masters. Client or Node is set, but for a fault of neither.
const (
	Paused  Kind = "paused" // the client stands still
	Resumed Kind = "resumed"
	Died    Kind = "died"    // the client's process ended; it holds nothing any more
	Started Kind = "started" // a new process took the place of one that had ended
	Closed  Kind = "closed"  // the client's process ended, and releases its locks
	Voted   Kind = "voted"   // Node executed a command of Client's Op; Text is the command's name and the answer
	Stored  Kind = "stored"  // on Node, Key belongs to Client's Op until Until, if nothing else happens
	Removed Kind = "removed"
	Fault   Kind = "fault" // Text has begun and lasts until Until, or was over at once if Until is not after At
)

// Event is one thing that happened.
type Event struct {
	At     time.Duration `json:"at"`
	Kind   Kind          `json:"kind"`
	Client int           `json:"client,omitempty"` // counted from 1; 0 is nobody
	Node   int           `json:"node,omitempty"`   // counted from 1; 0 is none
	Server int           `json:"server,omitempty"` // the server behind Node, counted from 1 with the nodes' own first; 0 is Node's own
	Op     int           `json:"op,omitempty"`     // the client's acquisition, counted from 1, and its lock
	Key    string        `json:"key,omitempty"`
	Until  time.Duration `json:"until,omitempty"`
	Token  int64         `json:"token,omitempty"` // the lock's fencing token; 0 is none, or unknown
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

// Log collects events as they happen. The zero Log is empty and ready. Its methods are safe
// for concurrent use.
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

// Events returns the events in the order of time. At one instant those of clients come
// first, by client and operation. Those of nodes follow, by node, and for each node as they
// were added.
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

// Fingerprint returns a digest of events, which must be in the order of [Log.Events]. It is the same for
// the same history.
func Fingerprint(events []Event) string {
	sum := sha256.New()
	for _, e := range events {
		fmt.Fprintln(sum, e)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}
