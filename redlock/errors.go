package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// Errors of this package, for errors.Is. Most come in a *[QuorumError], which reports which node
// did what.
var (
	// ErrHeld means that another client has the key or, with Config.Fair, waits for it. Enough
	// nodes answered, but too few granted. No key of the failed attempt stays on nodes that answer.
	ErrHeld = errs.Held

	// ErrNoQuorum means that more than N−Q of the N nodes had failed at the decision, so that no
	// majority of Q nodes was possible. It does not say whether another client has the key.
	ErrNoQuorum error = errs.Sentinel("no quorum")

	// ErrNotHeld means that so many nodes no longer have the lock's value that no majority can have
	// it. The lock is lost. Its keys on a minority are deleted by Release, or expire. No other
	// client's key was touched.
	ErrNotHeld = errs.NotHeld

	// ErrExpired means that the validity of the lock has ended by the Redlock's clock.
	ErrExpired error = errs.Sentinel("validity has ended")

	// ErrReleased means that the lock has been released. It is the cause of a released lock's
	// Context, and a second Release returns it. So does the Release of a nested lock whose outer lock
	// was released before.
	ErrReleased error = errs.Sentinel("released")

	// ErrReentrant means that the context of an acquisition carries a live lock on the key, made by
	// the same Redlock. No node was asked: to wait for that lock would be to wait for the caller
	// itself. With Config.Reentrant the acquisition joins the lock.
	ErrReentrant error = errs.Sentinel("the context already holds this key")

	// ErrDetached means that the lock was given away with Detach. Its keys live on, and another
	// process may go on with it. It is the cause of a detached lock's Context, and Extend, Release
	// and Detach return it afterwards.
	ErrDetached error = errs.Sentinel("detached")

	// ErrClosed means that the Redlock is closed.
	ErrClosed error = errs.Sentinel("closed")

	// ErrForeign means that the key exists and does not look like a lock of this library; see
	// NodeInspection.Foreign.
	ErrForeign = errs.Foreign

	// ErrDuplicateNode means that one server is listed as two nodes; it would have two votes.
	ErrDuplicateNode = errs.DuplicateNode
)

// QuorumError reports how a round failed: what was asked, how many nodes granted it, and why each
// of the others did not.
type QuorumError struct {
	Op      string      // "acquire", "extend", "release", "release after", "resume", "force release" or "health"
	Key     string      // without Config.KeyPrefix
	Need    int         // grants that would have been enough: N/2+1
	Granted int         // grants at the decision
	Total   int         // the number of nodes, N
	Nodes   []NodeError // the nodes that had not granted, in the order of New

	// Reason is one of the package's errors: ErrHeld, ErrNoQuorum, ErrNotHeld or ErrExpired. It is
	// nil if the caller's context ended before the nodes' answers were enough to decide; Cause is
	// then the cause of that context.
	Reason error
	// Cause is why the operation ended when it did, if Reason does not say everything: the cause of
	// the caller's context, or how the lock was lost before. It is nil otherwise.
	Cause error
}

// NodeError reports why one node did not grant an operation.
type NodeError struct {
	Addr  string
	Index int // the node's place in the list of New or Open, from 0

	// Vote is Refused if the node answered no. It is Failed if the node did not answer in time, or
	// its answer did not count as a vote. It is Pending if the decision did not wait for the node's
	// answer.
	Vote quorum.Vote

	// Err is the node's own reason. If the node refused, Err matches ErrHeld for an acquisition,
	// and ErrNotHeld for an extension or a release.
	Err error
}

func (e NodeError) Error() string { return e.Addr + ": " + errs.Text(e.Err) }

// Unwrap returns the node's own reason.
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
		return b.String() // no node was asked
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

// Unwrap returns the reason, the cause, and the errors of the nodes that did not refuse. Refusals
// are in Nodes alone: with ErrNoQuorum, ErrHeld from a few nodes does not say whether another
// client has the key.
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

// nodeTimeout is the error of a node whose vote did not come in time. It is not
// context.DeadlineExceeded, which would look like the caller's own deadline.
type nodeTimeout struct{ after time.Duration }

func (e nodeTimeout) Error() string { return fmt.Sprintf("no answer within %v", e.after) }
func (e nodeTimeout) Timeout() bool { return true }

var errUndecided = errors.New("had not answered when it was decided")

// ballotErr returns why a node did not grant a round.
func ballotErr(round *quorum.Round[protocol.Operation], b quorum.Ballot) error {
	return nodeErr(b.Err, round.Decided().Sub(round.Start()), round.Within())
}

// nodeErr returns the reason err for people. If it is ErrNoAnswer, took is how long the node had, and
// within how long it had at the most: a second proposal has less time than NodeTimeout to be answered
// in, and a renewal has more.
func nodeErr(err error, took, within time.Duration) error {
	switch {
	case errors.Is(err, quorum.ErrNoAnswer):
		return nodeTimeout{min(took.Round(time.Millisecond), within)}
	case errors.Is(err, quorum.ErrVotedTwice):
		return fmt.Errorf("%w: the server %w", errs.Inline(ErrDuplicateNode), err)
	case err == nil:
		return errUndecided
	}
	return err
}

// endedByHolder reports whether an operation failed because the lock's own process had ended the lock.
func endedByHolder(err error) bool {
	return errors.Is(err, ErrReleased) || errors.Is(err, ErrDetached) || errors.Is(err, ErrClosed)
}

// Cause returns a word for the reason of an error of this package, as a label for metrics and logs:
//
//   - "held", "no_quorum", "expired", "not_held", "released", "detached", "closed", "reentrant" and
//     "duplicate_node" for the error of that name
//   - "timeout" and "canceled" if a context ended and none of these was certain
//   - "error" for any other error, and "" for nil
func Cause(err error) string {
	if err == nil {
		return ""
	}
	var failed *QuorumError
	if errors.As(err, &failed) {
		err = cmp.Or(failed.Reason, failed.Cause) // not those of its nodes
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.word
		}
	}
	if failed != nil && failed.Reason == nil {
		return "canceled" // with a cause of the caller's own
	}
	return "error"
}

// causes has the certain reasons first: an acquisition whose context ended may match both.
var causes = []struct {
	err  error
	word string
}{
	{ErrHeld, "held"},
	{ErrNoQuorum, "no_quorum"},
	{ErrExpired, "expired"},
	{ErrNotHeld, "not_held"},
	{ErrReleased, "released"},
	{ErrDetached, "detached"},
	{ErrClosed, "closed"},
	{ErrReentrant, "reentrant"},
	{ErrDuplicateNode, "duplicate_node"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "canceled"},
}
