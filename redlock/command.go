package redlock

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/endpoint"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// call is one command on its way to one node.
type call = quorum.Call[command]

// command is one operation on a key, the same for every node. What goes into a list
// of arguments is in an interface already, made once and not for each node.
type command struct {
	kind     kind
	r        *Redlock // that sends it; nil for what neither frees a key nor waits
	resource string   // as the caller names it
	key      any      // string: as the nodes name it
	value    string
	ttl      any     // int64: milliseconds
	fence    *fence  // nil: without fencing
	queue    *queue  // the key's; nil: it does not matter to this kind
	stance   *stance // of who waits; nil: of who does not
	survey   *survey // where the answers to an inspection go
	foreign  bool    // a release by force also deletes a key that does not expire
}

type kind uint8

const (
	kindAcquire kind = iota // SET NX PX, or propose.lua
	kindTopUp               // the same, on a node that lacks the key of a held lock
	kindExtend              // extend.lua
	kindRelease             // release.lua: granted if the key was ours
	kindCleanUp             // release.lua: granted if it is certain that ours is gone
	kindStand               // queue.lua, with a place: gives the value back and waits
	kindLeave               // queue.lua, with a place: gives the value back and waits no more
	kindLook                // queue.lua, without a place: takes nothing, and granted by a node whose votes count
	kindForce               // force.lua, of somebody else's value: granted as kindCleanUp is
	kindInspect             // inspect.lua
)

func (k kind) String() string {
	return [...]string{"acquire", "top up", "extend", "release", "clean up", "wait", "leave", "look", "force release", "inspect"}[k]
}

// removes is the value whose key the command deletes whenever it is done; empty: none.
func (c *command) removes() string {
	switch c.kind {
	case kindRelease, kindCleanUp, kindForce:
		return c.value
	case kindStand, kindLeave:
		return c.stance.old
	}
	return ""
}

// leaves reports whether the command gives up the sender's entry in the key's queue.
func (c *command) leaves() bool {
	return c.stance != nil && (c.kind == kindLeave || c.kind == kindRelease)
}

func millisDuration(ms any) time.Duration { return fromMillis(ms.(int64)) }

// fromMillis saturates: a node can have a key for longer than a Duration can tell.
func fromMillis(ms int64) time.Duration {
	if ms > millis(math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

func millis(ttl time.Duration) int64 { return int64(ttl / time.Millisecond) }

var (
	errHeldHere error = &refusal{"has somebody else's value", ErrHeld}
	errQueued   error = &refusal{"has others waiting for it", ErrHeld}
	errNotHere  error = &refusal{"does not have our value", ErrNotHeld}

	errNoEvidence = errors.New("answered neither yes nor no")
	errNoScript   = errors.New("does not keep our scripts")
	errGarbled    = errors.New("answered with garbage")
	errElsewhere  = errors.New("says the key has moved: a Cluster needs a *redis.ClusterClient")
)

// answer tells the call what the node said to it. A vote needs positive
// evidence: after a failed handshake go-redis returns the error for the batch
// while each command's own error is nil and its value empty. standing is why the
// node's votes do not count, if they do not.
func (c *command) answer(call *call, cmd *wireCmd, batchErr, standing error) (ok bool) {
	err := cmd.Err()
	if c.stance != nil && c.stance.wait != nil && c.kind != kindRelease && (denied(err) || cmd.form.script != &queueScript) {
		c.stance.wait.denied(call.Node(), err)
	}
	if err == nil {
		if c.understand(call, cmd, standing) {
			return true
		}
		err = batchErr
		if err == nil {
			call.Fail(errNoEvidence)
			return false
		}
	}
	if errors.Is(err, redis.Nil) && cmd.Err() != nil && c.kind <= kindTopUp {
		if standing != nil {
			call.Fail(standing)
			return true
		}
		call.Refuse(0, errHeldHere)
		return true
	}
	shown := errs.Scrub(err, c.value)
	switch {
	case permanent(err):
		call.Fail(shown)
	case errs.Answered(err), neverSent(err):
		// Not done: the node is loading, a replica by now, busy, out of
		// memory, does not accept our password or grant us the right, …
		// A release is owed to it all the same.
		call.Unsent(shown)
	default:
		shown = endpoint.Plain(shown)
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			shown = fmt.Errorf("connection lost: %w", shown)
		}
		call.Lose(shown)
	}
	return false
}

// understand reads a reply; it reports false for one that is no answer. It does not
// count what a node without standing says to an acquisition, nor that it extended a
// lock. That it has lost one, or has deleted it, is true all the same.
func (c *command) understand(call *call, cmd *wireCmd, standing error) bool {
	if cmd.text != nil {
		ok := string(cmd.text.Bytes()) == "OK"
		switch {
		case ok && standing != nil:
			call.Fail(standing)
		case ok:
			call.Grant(0)
		}
		return ok
	}
	if cmd.form.script == &queueScript {
		return c.stood(call, cmd.number.Val(), standing)
	}
	if cmd.form.script == &inspectScript {
		return c.seen(call, cmd.number.Val(), standing)
	}
	reply, ok := cmd.number.Val().(int64)
	if c.kind >= kindRelease && reply&^(more-1) == more {
		reply -= more
		if c.r != nil {
			c.r.onward(call.Node(), c)
		}
	}
	switch {
	case !ok:
		return false
	case standing != nil && (c.kind <= kindTopUp || c.kind == kindLook || c.kind == kindExtend && reply == 1):
		call.Fail(standing)
		return true
	case c.kind <= kindTopUp:
		c.fenced(call, reply)
		return true
	case c.kind >= kindCleanUp && reply >= 0 && reply <= woke:
		call.Grant(reply)
		return true
	case c.kind == kindRelease && reply == woke, (c.kind == kindRelease || c.kind == kindExtend) && reply == 1:
		call.Grant(reply)
		return true
	case (c.kind == kindRelease || c.kind == kindExtend) && reply <= 0:
		call.Refuse(reply, errNotHere)
		return true
	}
	return false
}

// woke is a release's reply if somebody waits for the key, and has been told.
const woke = 2

// more is added to it if the key is free, and the queue has more of the dead than one
// script removes.
const more = 4

// stood reads the reply of queue.lua, and tells who waits what it says of the queue.
func (c *command) stood(call *call, reply any, standing error) bool {
	a, ok := readAnswer(reply)
	if !ok {
		return false
	}
	if a.left == leftMore && c.r != nil {
		c.r.onward(call.Node(), c)
	}
	if w := c.stance.wait; w != nil && (c.kind == kindAcquire || c.kind == kindStand) {
		w.heard(call.Node(), c.stance.number, a)
	}
	switch {
	case c.kind == kindLook && standing != nil:
		call.Fail(standing)
	case c.kind >= kindStand:
		call.Grant(0)
	case standing != nil:
		call.Fail(standing)
	case a.verdict == answerGranted:
		call.Grant(0)
	case a.verdict == answerFenced && a.fence >= maxToken:
		call.Fail(errTokenEnd) // one such node must not make all others like it
	case a.fence >= maxToken:
		call.Refuse(0, errHeldHere) // as above
	case a.verdict == answerFenced:
		call.Refuse(a.fence, errFenced)
	case a.verdict == answerHeld:
		call.Refuse(a.fence, errHeldHere)
	default:
		call.Refuse(a.fence, errQueued)
	}
	return true
}

// fenced reads the reply of propose.lua.
func (c *command) fenced(call *call, reply int64) {
	switch {
	case reply == 1:
		call.Grant(0)
	case reply >= maxToken:
		call.Fail(errTokenEnd) // one such node must not make all others like it
	case reply <= -maxToken:
		call.Refuse(0, errHeldHere)
	case reply <= 0:
		call.Refuse(-reply, errHeldHere)
	default:
		call.Refuse(reply, errFenced)
	}
}

const forever = 1<<63 - 1

func noScript(err error) bool { return errs.Says(err, "NOSCRIPT") }
func moved(err error) bool    { return errs.Says(err, "MOVED") }

// permanent reports a server's answer that will be the same next time: it is about the
// server's version or configuration file, or about data that is not ours. Passwords and
// rights change while both sides run, so a refusal for them ends nothing that has to be
// delivered.
func permanent(err error) bool {
	return errs.Says(err, "WRONGTYPE") || errs.Says(err, "ERR unknown command")
}

// unauthenticated reports that a connection is of no use, also later: the server does not
// know the user at its other end, and go-redis authenticates on a new connection alone.
func unauthenticated(err error) bool { return errs.Says(err, "NOAUTH") }

// denied reports that a server does not let us do what a script does.
func denied(err error) bool {
	if err == nil || !errs.Answered(err) {
		return false
	}
	for _, words := range []string{"NOPERM", "ACL failure", "can't run this command", "nknown command", "nknown Redis command", "not allowed from script"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// neverSent reports that a command did not leave: there was no connection.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}

// String never shows the value.
func (c *command) String() string { return fmt.Sprintf("%s %q", c.kind, c.resource) }
