package conn

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/script"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// call is one operation on its way to one node.
type call = quorum.Call[protocol.Operation]

// ErrGarbled reports a reply that is not in Redis' protocol.
var ErrGarbled = errors.New("answered with garbage")

var (
	errNoEvidence = errors.New("answered neither yes nor no")
	errNoScript   = errors.New("does not keep our scripts")
	errElsewhere  = errors.New("says the key has moved: a Cluster needs a *redis.ClusterClient")
)

// answer gives a call the vote of the node, and the call's Observer the decoded reply. It
// reports false if the node gave no vote.
//
// A vote needs positive evidence: after a failed handshake go-redis returns the error for the
// batch, while each command's own error is nil and its value empty. ineligible is the reason
// why the node's votes do not count; nil if they do. denial is the error with which the server
// last denied us the queue; nil if it permits it.
func answer(c *call, cmd *wireCmd, batchErr, ineligible, denial error) (ok bool) {
	op, err := c.Op(), cmd.Err()
	if op.Sender != nil && op.Observer != nil && op.Kind != protocol.Release && (Denied(err) || cmd.form.script != &script.Queue) {
		op.Observer.QueueDenied(c.Node(), denial)
	}
	if err == nil {
		if r, ok := cmd.decode(op, ineligible); ok {
			if op.Observer != nil {
				op.Observer.Replied(c.Node(), op, r)
			}
			cast(c, r)
			return true
		}
		err = batchErr
		if err == nil {
			c.Fail(errNoEvidence)
			return false
		}
	}
	if errors.Is(err, redis.Nil) && cmd.Err() != nil {
		if r, ok := op.DecodeNil(ineligible); ok {
			cast(c, r)
			return true
		}
	}
	shown := errs.Scrub(err, op.Value)
	switch {
	case permanent(err):
		c.Fail(shown)
	case errs.Answered(err), neverSent(err):
		// The node did not execute the command: it is loading, a replica by now, busy or out of
		// memory, or it does not accept our password or grant us the right. A release stays
		// pending.
		c.Unsent(shown)
	default:
		shown = plain.Error(shown)
		if plain.Closed(err) {
			shown = fmt.Errorf("connection lost: %w", shown)
		}
		c.Lose(shown)
	}
	return false
}

// decode decodes the node's reply to op.
func (w *wireCmd) decode(op *protocol.Operation, ineligible error) (protocol.Reply, bool) {
	if w.text != nil {
		return protocol.DecodeSet(string(w.text.Bytes()), ineligible)
	}
	return op.Decode(w.form.script, w.number.Val(), ineligible)
}

// cast gives the call its vote.
func cast(c *call, r protocol.Reply) {
	switch r.Vote {
	case quorum.Granted:
		c.Grant(r.Number)
	case quorum.Refused:
		c.Refuse(r.Number, r.Err)
	default:
		c.Fail(r.Err)
	}
}

// Moved reports whether err is a Cluster's reply that another of its shards has the key.
func Moved(err error) bool { return errs.Says(err, "MOVED") }

func noScript(err error) bool { return errs.Says(err, "NOSCRIPT") }

// permanent reports whether err is a server's reply that will be the same next time. Such a
// reply is about the server's version or configuration file, or about data that is not ours.
// Passwords and rights change while both sides run, so a refusal for them keeps a delivery
// pending.
func permanent(err error) bool {
	return errs.Says(err, "WRONGTYPE") || errs.Says(err, "ERR unknown command")
}

// unauthenticated reports whether err makes a connection useless: the server does not know the
// user at its other end, and go-redis authenticates only on a new connection.
func unauthenticated(err error) bool { return errs.Says(err, "NOAUTH") }

// Denied reports whether err is a server's reply that a script, or a command in it, is unknown
// or not permitted.
func Denied(err error) bool {
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

// neverSent reports whether err means that a command was not sent, as there was no connection.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, redis.ErrClosed) ||
		errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted)
}
