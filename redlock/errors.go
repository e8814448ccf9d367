package redlock

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// What went wrong, for errors.Is. Most arrive inside a *[QuorumError] that says
// which node did what.
var (
	// ErrHeld: somebody else has the key. Enough nodes answered; too few
	// granted. Nothing of ours stays on the nodes.
	ErrHeld = errs.Held

	// ErrNoQuorum: at the decision more than N−Q nodes had failed, so no
	// majority was possible. It says nothing about who has the key.
	ErrNoQuorum error = errs.Sentinel("no quorum")

	// ErrNotHeld: so many nodes no longer have our value that a majority
	// cannot have it. The lock is lost; what remains of it on a minority goes
	// with Release or with its ttl. Nobody else's key was touched.
	ErrNotHeld = errs.NotHeld

	// ErrExpired: by our own clock the validity of the lock has ended.
	ErrExpired error = errs.Sentinel("validity has ended")

	// ErrReleased: the lock has been released. It is the cause on the context
	// of a released lock, and what a second Release returns.
	ErrReleased error = errs.Sentinel("released")

	// ErrClosed: the Redlock is closed.
	ErrClosed error = errs.Sentinel("closed")

	// ErrForeign: the key is there and does not look like a lock of this library; see
	// NodeInspection.Foreign.
	ErrForeign = errs.Foreign

	// ErrDuplicateNode: one node is listed twice; it would have two votes.
	ErrDuplicateNode = errs.DuplicateNode
)

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

func (e NodeError) Error() string { return e.Addr + ": " + errs.Text(e.Err) }

// Unwrap gives the node's own cause.
func (e NodeError) Unwrap() error { return e.Err }

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "redlock: %s %q: ", e.Op, errs.Short(e.Key))
	switch {
	case e.Reason == nil:
		b.WriteString(errs.Text(e.Cause))
	case e.Cause == nil:
		b.WriteString(errs.Text(e.Reason))
	default:
		fmt.Fprintf(&b, "%s (%s)", errs.Text(e.Reason), errs.Text(e.Cause))
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

// nodeTimeout is a node's vote that did not come in time. It is not
// context.DeadlineExceeded: that would look like the caller's own deadline.
type nodeTimeout struct{ after time.Duration }

func (e nodeTimeout) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (e nodeTimeout) Timeout() bool { return true }
