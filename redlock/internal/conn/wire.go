package conn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// wireCmd is a command for go-redis that is sent at most once. By default go-redis sends a
// command again after a lost connection. If the first SET NX was executed, the second would
// find our own key and take it for another client's (go-redis#2985).
//
// All of its arguments and its reply are set anew for each use, as the hooks of a caller's
// client may have changed them. The lock's value is passed by pointer: go-redis writes the
// string, and a hook that logs the command prints only an address.
type wireCmd struct {
	redis.Cmder
	form   form
	text   *redis.ZeroCopyStringCmd // of a SET; otherwise nil
	number *redis.Cmd               // of a script; any type: a string must not pass for a number
	args   []any                    // the arguments of text or number

	verb, script any // of a script: EVALSHA and the hash, or EVAL and the text
	keys         any // int: the number of keys
	value, old   string

	buf [8]byte // for the reply of a SET
}

// RetryDenied is the pause before a client tries again what a server has denied.
const RetryDenied = time.Minute

// form describes the arguments of a command.
type form struct {
	script *script.Script // nil: SET
	keys   int
	args   int // without the keys
}

var (
	formPropose      = form{&script.Propose, 2, 5}
	formExtend       = form{&script.Extend, 1, 2}
	formExtendFence  = form{&script.Extend, 2, 4}
	formRelease      = form{&script.Release, 2, 1}
	formReleaseLeave = form{&script.Release, 3, 3}
	formRetain       = form{&script.Retain, 2, 2}
	formForce        = form{&script.Force, 2, 4}
	formTry          = form{&script.Queue, 3, 6}
	formTryFence     = form{&script.Queue, 4, 8}
	formEnqueue      = form{&script.Queue, 3, 4} // for a Dequeue and a Probe too
	formInspect      = form{&script.Inspect, 2, 0}
	actions          = [...]any{protocol.Acquire: "try", protocol.TopUp: "try", protocol.Enqueue: "enqueue", protocol.Dequeue: "dequeue", protocol.Probe: "enqueue"}
)

func (*wireCmd) NoRetry() bool { return true }

// String is for hooks. Unlike go-redis' own it omits the reply, as the reply to an inspection
// contains a lock's value.
func (w *wireCmd) String() string { return strings.TrimSpace(fmt.Sprintln(w.args...)) }

func newSet() *wireCmd {
	c := &wireCmd{verb: "set", args: make([]any, 6)}
	c.text = redis.NewZeroCopyStringCmd(context.Background(), c.buf[:], c.args...)
	c.Cmder = c.text
	return c
}

// newScriptCall makes a call of a script, by its hash or whole.
func newScriptCall(f form, whole bool) *wireCmd {
	c := &wireCmd{form: f, verb: "evalsha", script: f.script.SHA1, keys: f.keys, args: make([]any, 3+f.keys+f.args)}
	if whole {
		c.verb, c.script = "eval", f.script.Text
	}
	c.number = redis.NewCmd(context.Background(), c.args...)
	c.Cmder = c.number
	return c
}

// fill sets the arguments for c, which is sent now, and clears the reply. On a server of a Cluster the sender has
// another name in the queue.
func (w *wireCmd) fill(c *protocol.Operation, sharded bool, clk clock.Clock) {
	w.value = c.Value
	w.SetErr(nil)
	a := w.args
	a[0] = w.verb
	if w.text != nil {
		w.text.SetVal(0)
		a[1], a[2], a[3], a[4], a[5] = c.NodeKey, &w.value, "nx", "px", c.TTL
		if c.Kind == protocol.Health {
			a[3] = "xx"
		}
		return
	}
	w.number.SetVal(nil)
	a[1], a[2], a[3] = w.script, w.keys, c.NodeKey
	a = a[4:]
	switch w.form.script {
	case &script.Extend:
		if w.form == formExtendFence {
			a[0], a = c.Fence.Key, a[1:]
			a[2], a[3] = c.Fence.Token, c.Fence.Retention
		}
		a[0], a[1] = &w.value, c.TTL
	case &script.Propose:
		a[0], a[1], a[2], a[3], a[4] = c.Fence.Key, &w.value, c.TTL, c.Fence.Token, c.Fence.Retention
		a[5] = "0"
		if c.Kind == protocol.TopUp {
			a[5] = "1"
		}
	case &script.Release:
		if w.form == formReleaseLeave {
			a[0], a = c.Queue.Key, a[1:]
			a[2], a[3] = c.Sender.NameOn(sharded), c.Sender.Ticket
		}
		a[0], a[1] = c.Queue.Flag, &w.value
		if c.Value == "" && c.Sender != nil { // nothing to delete, and a key may be empty
			w.value = c.Sender.Name.(string)
		}
	case &script.Retain:
		a[0], a[1], a[2] = c.Queue.Flag, &w.value, c.Remaining(clk.Now())
	case &script.Force:
		w.old = protocol.BrokenMessage(c.Value) // which no hook may print either
		a[0], a[1], a[2], a[3] = c.Queue.Flag, &w.value, protocol.BrokenChannel(c.NodeKey.(string), sharded), &w.old
		a[4] = "0"
		if c.Foreign {
			a[4] = "1"
		}
	case &script.Inspect:
		a[0] = c.Queue.Flag
	case &script.Queue:
		a[0], a[1], a = c.Queue.Key, c.Queue.Flag, a[2:]
		if w.form == formTryFence {
			a[0], a = c.Fence.Key, a[1:]
			a[6], a[7] = c.Fence.Token, c.Fence.Retention
		}
		a[0], a[1], a[2], a[3] = actions[c.Kind], c.Sender.NameOn(sharded), c.Sender.Ticket, &w.old
		if c.Kind == protocol.Enqueue && c.Sender.Waiter.Left(c.Sender.Number) {
			a[0] = actions[protocol.Dequeue] // or the entry would come after its removal
		}
		w.old = c.Sender.Old
		if w.form != formEnqueue {
			a[4], a[5] = &w.value, c.TTL
		}
	}
}

// clear removes the arguments and the reply.
func (w *wireCmd) clear() {
	w.value, w.old = "", ""
	clear(w.args)
	if w.number != nil {
		w.number.SetVal(nil)
	}
}

// wire holds the commands of one connection, and reuses them for its next batches: new commands
// for each operation would be most of its garbage. Only the goroutine that carries the batch
// uses them.
type wire struct {
	cmds []*wireCmd    // the commands of the batch
	out  []redis.Cmder // the same for go-redis, after the questions about the server's identity

	sets, releases, retains, forces, queuedReleases, extends, proposals, tries, enqueues, inspections shelf

	loaded     map[string]bool // hashes of the scripts that the server was sent
	whole      bool            // every script is sent whole, also those in loaded
	sharded    bool            // the server belongs to a Cluster
	deniedAt   time.Time       // when the server last denied us the queue; zero: it permits it
	denial     error           // the error by which it did
	deniedLong bool            // that was longer than RetryDenied ago, so the batch tries the queue again
}

// shelf holds commands of one kind, of which the first are in use.
type shelf struct {
	made []*wireCmd
	used int
}

func (s *shelf) take(create func() *wireCmd) *wireCmd {
	if s.used == len(s.made) {
		s.made = append(s.made, create())
	}
	s.used++
	return s.made[s.used-1]
}

// encode adds the batch to cmds and out.
func (w *wire) encode(batch []*call, clk clock.Clock) {
	for _, call := range batch {
		c := call.Op()
		cmd := w.command(c)
		cmd.fill(c, w.sharded, clk)
		w.cmds = append(w.cmds, cmd)
		w.out = append(w.out, cmd)
	}
}

// retryQueue makes the batch try the queue again if the server denied it longer than RetryDenied
// ago.
func (w *wire) retryQueue(clk clock.Clock) {
	w.deniedLong = !w.deniedAt.IsZero() && clk.Now().Sub(w.deniedAt) >= RetryDenied
}

// reset forgets the batch, its keys and its values.
func (w *wire) reset() {
	for _, cmd := range w.cmds {
		cmd.clear()
	}
	clear(w.cmds)
	clear(w.out)
	w.cmds, w.out = w.cmds[:0], w.out[:0]
	for _, s := range []*shelf{&w.sets, &w.releases, &w.retains, &w.forces, &w.queuedReleases, &w.extends, &w.proposals, &w.tries, &w.enqueues, &w.inspections} {
		s.used = 0
	}
}

// command returns a command for c. A Redlock has a fence for each of its locks or for none, so
// all commands on a shelf have the same form. If the server denies us the queue, an Acquire is
// an ordinary attempt, and an Enqueue, Dequeue or Probe is a release of c.Value.
func (w *wire) command(c *protocol.Operation) *wireCmd {
	queued, fenced := c.Sender != nil && w.deniedAt.IsZero(), c.Fence != nil
	if c.Kind == protocol.Acquire && c.Sender != nil && w.deniedLong {
		queued = true
	}
	switch c.Kind {
	case protocol.Extend:
		if fenced {
			return w.script(&w.extends, formExtendFence)
		}
		return w.script(&w.extends, formExtend)
	case protocol.Release:
		if queued {
			return w.script(&w.queuedReleases, formReleaseLeave)
		}
	case protocol.Retain:
		return w.script(&w.retains, formRetain)
	case protocol.ForceRelease:
		return w.script(&w.forces, formForce)
	case protocol.Inspect:
		return w.script(&w.inspections, formInspect)
	case protocol.Enqueue, protocol.Dequeue, protocol.Probe:
		if queued {
			return w.script(&w.enqueues, formEnqueue)
		}
	case protocol.Acquire, protocol.TopUp, protocol.Health:
		switch {
		case queued && fenced:
			return w.script(&w.tries, formTryFence)
		case queued:
			return w.script(&w.tries, formTry)
		case fenced:
			return w.script(&w.proposals, formPropose)
		}
		return w.sets.take(newSet)
	}
	return w.script(&w.releases, formRelease)
}

// script returns a call of a script. The first one carries the whole script, as the server may
// not know it, and later ones its hash. To learn from the server's error that a script is
// missing would cost a round trip, during which later commands of the batch overtake the call.
func (w *wire) script(from *shelf, f form) *wireCmd {
	if w.whole || !w.loaded[f.script.SHA1] {
		if w.loaded == nil {
			w.loaded = map[string]bool{}
		}
		w.loaded[f.script.SHA1] = true
		return newScriptCall(f, true)
	}
	return from.take(func() *wireCmd { return newScriptCall(f, false) })
}
