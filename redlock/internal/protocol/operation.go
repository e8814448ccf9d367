// Package protocol defines the messages between a client and a node: operations on a key, the names
// of the keys, and the decoding of replies. Package script has the Lua scripts that carry the
// operations out. Package protocol does no I/O and holds no state.
package protocol

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Kind is the kind of an operation.
type Kind uint8

const (
	// Acquire takes the key: with SET NX PX, with propose.lua if there is a fence, or with
	// queue.lua if there is a queue entry.
	Acquire Kind = iota
	// TopUp takes the key of a held lock on a node that lacks it, as Acquire does.
	TopUp
	// Extend prolongs the key (extend.lua).
	Extend
	// Release deletes the key (release.lua). It is granted if the key was the client's.
	Release
	// CleanUp deletes the key after a failed attempt (release.lua). It is granted if the
	// client's key is certainly gone.
	CleanUp
	// Enqueue deletes the key that an attempt left, and asks for a queue entry (queue.lua).
	Enqueue
	// Dequeue deletes the key that an attempt left, and gives up the queue entry (queue.lua).
	Dequeue
	// Probe asks whether a node answers and its vote counts (queue.lua). It takes nothing.
	Probe
	// ForceRelease deletes another client's key (force.lua). It is granted as CleanUp is.
	ForceRelease
	// Inspect reads the key (inspect.lua).
	Inspect
	// Retain leaves the client's key taken until a time (retain.lua).
	Retain
	// Health asks whether a node would take a key now: SET XX of HealthKey, which nobody has. Unlike
	// a read, it fails on a replica, and on a master that is out of memory or cannot save.
	Health
)

// String returns the name of the operation in errors and traces.
func (k Kind) String() string {
	return names[k]
}

var names = [...]string{"acquire", "top up", "extend", "release", "clean up", "wait", "leave", "look", "force release", "inspect", "release after", "health"}

// Takes reports whether the operation takes the key.
func (k Kind) Takes() bool { return k == Acquire || k == TopUp }

// deletesForCertain reports whether the operation is granted once the key is certainly gone.
func (k Kind) deletesForCertain() bool { return k == CleanUp || k == ForceRelease || k.queues() }

// keeps reports whether the operation is granted only if the client's key is there, and stays.
func (k Kind) keeps() bool { return k == Extend || k == Retain }

// queues reports whether the operation concerns the queue and does not take the key.
func (k Kind) queues() bool { return k == Enqueue || k == Dequeue || k == Probe }

// Operation is one operation on a key, the same for every node. The arguments of a command are
// in interfaces, so that they are allocated once and not for each node.
type Operation struct {
	Kind    Kind
	Key     string          // as the caller names it
	Context context.Context // for Config.Observer: what the operation was asked for with; nil: nothing
	NodeKey any             // string: as the nodes name it
	Value   string          // the lock's value; for a ForceRelease the value to delete
	TTL     any             // int64: milliseconds
	Until   time.Time       // of a Retain: when the key is to expire, by the client's clock
	Fence   *Fence          // nil: without fencing
	Queue   *Queue          // the names of the key's queue; nil: not needed
	Sender  *Sender         // who the client is in the queue; nil: it has no part in it
	Foreign bool            // a ForceRelease also deletes a key that does not expire, and so is foreign

	Observer Observer // nil: only the votes are needed
}

// String names the operation without its value.
func (o *Operation) String() string { return fmt.Sprintf("%s %q", o.Kind, o.Key) }

// Removes returns the value whose key the operation deletes when it is executed; "" if there is
// none.
func (o *Operation) Removes() string {
	switch o.Kind {
	case Release, CleanUp, ForceRelease:
		return o.Value
	case Enqueue, Dequeue:
		return o.Sender.Old
	}
	return ""
}

// Remaining returns in how many milliseconds a Retain that is sent now lets the key expire. At least
// one, at which Redis lets it expire at once.
func (o *Operation) Remaining(now time.Time) int64 {
	left := o.Until.Sub(now)
	ms := Millis(left)
	if left%time.Millisecond > 0 && ms < Millis(math.MaxInt64) {
		ms++
	}
	return max(ms, 1)
}

// Leaves reports whether the operation gives up the sender's queue entry without taking the key.
func (o *Operation) Leaves() bool {
	return o.Sender != nil && (o.Kind == Dequeue || o.Kind == Release)
}

// Fence holds the arguments of an operation for a fencing token.
type Fence struct {
	Key       any // string: the fence's key, in the slot of the lock's key
	Token     any // int64: the token that is proposed; for a held lock its own
	Retention any // int64: milliseconds

	Read time.Time // when the clock was read for the token
}

const (
	// MaxToken is the highest token that Lua, whose numbers are doubles, distinguishes from the
	// next. As microseconds it is the year 2255.
	MaxToken = 1<<53 - 1
	// MinToken is the lowest token. A node that refuses a token replies with its fence, which
	// is not below the token. So no refusal reads as the 1 of a grant.
	MinToken = 2
)

// Sender identifies the client that sends an operation to a key's queue, and its entry there if it
// has one.
type Sender struct {
	Waiter    Waiter // the wait that the entry belongs to; nil: the sender takes no entry
	Name      any    // string: the sender's name on a single server: its channel and the key
	ShardName any    // string: the same on a shard of a Cluster
	Ticket    any    // string: the ticket
	Number    int64  // the ticket as a number; 0 if Waiter is nil
	Old       string // the value of an earlier attempt, whose key is deleted first
}

// NoTicket is the ticket of a sender that takes no entry. It does not get a key for which
// others wait.
const NoTicket = "0"

// NameOn returns the sender's name on a shard of a Cluster, or on a single server.
func (e *Sender) NameOn(sharded bool) any {
	if sharded {
		return e.ShardName
	}
	return e.Name
}

// A Waiter tells whether a wait still has its queue entry.
type Waiter interface {
	// Left reports whether the wait has given up the entry with this ticket: the nodes have been,
	// or are being, told so. An Enqueue that is sent after that must not make the entry again.
	Left(ticket int64) bool
}

// An Observer receives the replies to an operation, each before the node's vote is counted. It
// is called on a lane's goroutine and must not block.
type Observer interface {
	// Replied reports a reply that could be decoded.
	Replied(node int, op *Operation, r Reply)
	// QueueDenied reports that the node has not let the client queue, with the error by which it
	// last said so; nil if it has permitted it meanwhile.
	QueueDenied(node int, err error)
}

// Millis converts a time to live to milliseconds.
func Millis(d time.Duration) int64 { return int64(d / time.Millisecond) }

// Duration converts milliseconds. It returns the longest Duration if they are more, as a node
// can have a key for longer than that.
func Duration(ms int64) time.Duration {
	if ms > Millis(math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// TicketText returns a ticket as an argument of a script.
func TicketText(ticket int64) string { return strconv.FormatInt(ticket, 10) }
