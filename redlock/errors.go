package redlock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/quorum"
)

// What went wrong, for errors.Is. Most arrive inside a *[QuorumError] that says
// which node did what.
var (
	// ErrHeld: somebody else has the key. Enough nodes answered; too few
	// granted. Nothing of ours stays on the nodes.
	ErrHeld error = sentinel("held by another client")

	// ErrNoQuorum: at the decision more than N−Q nodes had failed, so no
	// majority was possible. It says nothing about who has the key.
	ErrNoQuorum error = sentinel("no quorum")

	// ErrNotHeld: so many nodes no longer have our value that a majority
	// cannot have it. The lock is lost; what remains of it on a minority goes
	// with Release or with its ttl. Nobody else's key was touched.
	ErrNotHeld error = sentinel("no longer held")

	// ErrExpired: by our own clock the validity of the lock has ended.
	ErrExpired error = sentinel("validity has ended")

	// ErrReleased: the lock has been released. It is the cause on the context
	// of a released lock, and what a second Release returns.
	ErrReleased error = sentinel("released")

	// ErrClosed: the Redlock is closed.
	ErrClosed error = sentinel("closed")

	// ErrForeign: the key is there and does not look like a lock of this library; see
	// NodeInspection.Foreign.
	ErrForeign error = sentinel("not a lock of this library")

	// ErrDuplicateNode: one node is listed twice; it would have two votes.
	ErrDuplicateNode error = sentinel("one node is listed twice")
)

// sentinel prints with the package's prefix on its own, and without it as a
// part of a longer message.
type sentinel string

func (s sentinel) Error() string { return "redlock: " + string(s) }

// QuorumError tells how a round failed: what was asked, how many nodes granted
// it, and what each of the others said instead.
type QuorumError struct {
	Op      string      // "acquire", "extend", "release" or "force release"
	Key     string      // the resource, without Config.KeyPrefix
	Need    int         // grants that would have been enough: N/2+1
	Granted int         // grants at the decision
	Total   int         // N
	Nodes   []NodeError // the nodes that had not granted, in the order of New

	// Reason is one of the package's errors: ErrHeld, ErrNoQuorum, ErrNotHeld or
	// ErrExpired. It is nil if the caller's context ended before the nodes' answers
	// were enough to decide; then Cause says so.
	Reason error
	// Cause is why the operation ended when it did, if there is more to say: the
	// cause of the caller's context, or how the lock was lost before. Nil otherwise.
	Cause error
}

// NodeError is what one node said instead of granting.
type NodeError struct {
	Addr  string
	Index int // of the node in the order of New or Open

	// Vote tells a node that answered no, which is Refused, from one that is
	// Failed: it did not answer in time, or not with a vote. It is Pending if the
	// node's answer was not waited for.
	Vote quorum.Vote

	// Err is the node's own cause. If the node refused, it matches ErrHeld for an
	// acquisition, and ErrNotHeld for an extension or a release.
	Err error
}

func (e NodeError) Error() string { return e.Addr + ": " + bare(e.Err) }

// Unwrap gives the node's own cause.
func (e NodeError) Unwrap() error { return e.Err }

// refusal is the cause of a node that refused. What one node found need not be what came
// of the operation, so a QuorumError does not match its reason.
type refusal struct {
	text   string
	reason error
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.reason }

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %q: ", e.Op, short(e.Key))
	switch {
	case e.Reason == nil:
		b.WriteString(bare(e.Cause))
	case e.Cause == nil:
		b.WriteString(bare(e.Reason))
	default:
		fmt.Fprintf(&b, "%s (%s)", bare(e.Reason), bare(e.Cause))
	}
	if len(e.Nodes) == 0 && e.Granted == 0 {
		return b.String() // nobody was asked
	}
	fmt.Fprintf(&b, ": %d of %d nodes granted, %d needed", e.Granted, e.Total, e.Need)
	for i, n := range e.Nodes {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + n.Error())
	}
	return b.String()
}

// Unwrap gives the reason, the cause, and what each node said that did not refuse.
// Refusals are in Nodes alone: with ErrNoQuorum, ErrHeld from a few nodes says nothing
// about who has the key.
func (e *QuorumError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Reason, e.Cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, n := range e.Nodes {
		if n.Vote != quorum.Refused {
			errs = append(errs, n)
		}
	}
	return errs
}

// opError says what failed without any node being asked, or heard.
func opError(op, key string, cause error) error {
	return fmt.Errorf("redlock: %s %q: %w", op, short(key), plain{cause})
}

// plain prints an error of this package in the middle of a message.
type plain struct{ error }

func (p plain) Error() string { return bare(p.error) }
func (p plain) Unwrap() error { return p.error }

// bare is the text of err without this package's prefix.
func bare(err error) string {
	if err == nil {
		return "no reason given"
	}
	return strings.TrimPrefix(err.Error(), "redlock: ")
}

// nodeTimeout is a node's vote that did not come in time. It is not
// context.DeadlineExceeded: that would look like the caller's own deadline.
type nodeTimeout struct{ after time.Duration }

func (e nodeTimeout) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (e nodeTimeout) Timeout() bool { return true }

// scrub makes an error of a node fit to be shown. Servers quote the arguments of
// a command that they do not know, passwords and values among them; what an old
// context of ours said must not be taken for the caller's.
func scrub(err error, value string) error {
	msg := err.Error()
	clean := msg
	if i := strings.Index(clean, "with args"); i >= 0 {
		clean = strings.TrimRight(clean[:i], " ,")
	}
	// Also another command's value, and one that was cut: nothing else in a
	// server's message looks like a UUID.
	clean = uuidLike().ReplaceAllLiteralString(clean, "…")
	if value != "" {
		clean = strings.ReplaceAll(clean, value, "…")
	}
	if clean != msg || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.New(clean)
	}
	return err
}

// uuidLike is compiled when it is needed: a program that ends soon would pay for it too.
var uuidLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]*`)
})

// short is a key for a message: a key may be a megabyte.
func short(key string) string {
	const enough = 100
	if len(key) <= enough {
		return key
	}
	return key[:enough] + "…"
}

// answered reports that err is a server's own reply, so that the command was
// not left half-way on the connection.
func answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
