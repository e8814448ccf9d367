package redlock

import (
	"context"
	"time"

	"github.com/quorumlock/redlock/quorum"
)

// Observer receives reports of what a Redlock does, for metrics and traces. Package redlockotel has one
// for OpenTelemetry. No report has a lock's value, a handle or a password. Three kinds of calls are not
// reported: those that fail because of an argument, acquisitions whose context had ended before, and
// acquisitions that return a nested lock (Config.Reentrant) or ErrReentrant. An Extend of a nested
// lock is reported.
//
// AcquireBegan and OperationEnded are called on the goroutine of the operation's caller and with its
// context, and so is LockEnded when the holder releases the lock. An OpRenew has no caller. The
// goroutines that end and renew all locks, and carry the votes, must not wait for an Observer. So
// their reports come on one goroutine that serves the Observer alone: one call at a time, in order,
// with the context of the operation or of the lock's acquisition. No report is dropped, however slow
// the Observer is. If 16,384 reports wait, further votes and renewals of one kind are merged into one
// report, with context.Background; see Count.
//
// An Observer cannot break a lock:
//
//   - If it panics, that call ends, and Config.Logger gets a warning, "observer panicked". If it ends
//     its goroutine (runtime.Goexit, a failed require) during an acquisition, the lock has no owner, and
//     expires.
//   - If it blocks on a caller's goroutine, it holds up that caller alone. No mutex is held meanwhile,
//     and Close does not wait. All locks end and are renewed on time. A Release or Extend is over
//     before it is reported. A lock that expires before the Observer lets its caller go on
//     is not returned: the acquisition fails with ErrExpired, and LockEnded follows its
//     OperationEnded.
//   - If it blocks on its own goroutine, no caller and no lock waits for it, and Close does for a
//     second at the most.
//
// Many goroutines may call the methods at the same time. An Observer must not call a method that asks
// the nodes, because that call would be reported to it in turn. Methods may be added to the interface.
// An implementation that embeds NoObserver still compiles then.
type Observer interface {
	// AcquireBegan reports that Acquire, TryAcquire or Do asks for a lock. The context that it returns
	// is used for the acquisition's OperationEnded, and for nothing else: a span belongs there. If it
	// is nil, ctx is used.
	AcquireBegan(ctx context.Context, op Operation) context.Context

	// OperationEnded reports that an operation has ended and, if it has a caller, is about to return
	// to it.
	OperationEnded(ctx context.Context, result OperationResult)

	// LockEnded reports that a lock has ended, once for each lock that an operation has acquired.
	LockEnded(ctx context.Context, end LockEnd)

	// NodeVoted reports a node's vote in a round, also one that came after the decision. It is
	// called at most once for each node of each round: when the node has answered, or when it is
	// certain that it did not in time. If a node hangs, and a majority has answered without it,
	// that is when the node's client gives up reading: after its ReadTimeout, a second with Open.
	// It is not called for a node that was not asked because the round was decided before, unless
	// the node had been silent for NodeTimeout by then.
	NodeVoted(ctx context.Context, vote NodeVote)

	// QuarantineBegan reports that the votes of a server do not count until a time (Config.RestartGuard),
	// or until a later time than was reported before.
	QuarantineBegan(q Quarantine)

	// QuarantineEnded reports that this time has come, or that the Redlock was closed before.
	QuarantineEnded(q Quarantine)
}

// The operations that are reported to an Observer.
const (
	OpAcquire = "acquire" // Acquire, TryAcquire or Do, until there is a lock or an error
	OpResume  = "resume"  // Resume
	OpExtend  = "extend"  // Extend
	OpRenew   = "renew"   // an extension by KeepAlive or Do, which has no caller
	OpRelease = "release" // Release or ReleaseAfter, also that of Do
)

// Operation is an operation that is reported to an Observer.
type Operation struct {
	Op    string        // OpAcquire, OpResume, OpExtend, OpRenew or OpRelease
	Key   string        // without Config.KeyPrefix
	TTL   time.Duration // as asked for; 0 for a release
	Start time.Time     // when it began, by the Redlock's clock
}

// OperationResult is the result of an operation.
type OperationResult struct {
	Operation
	Elapsed time.Duration // from Start until the operation ended
	// Waited is the part of Elapsed after an acquisition found that it had to wait, because the key was
	// taken or there was no quorum. It is 0 if it did not have to.
	Waited time.Duration
	Rounds int // the number of rounds that were decided
	// Left is the validity that was left when an OpExtend or OpRenew was decided, before the extension
	// was applied. A renewal that is on time has about two thirds of the ttl.
	Left time.Duration
	Err  error // as the caller gets it; nil if the operation succeeded. Cause makes a word of it
	// Count is 1, or for an OpRenew more: the Observer was so slow that renewals with the same Cause
	// were merged. Elapsed and Left are then means, Rounds is the sum, and Key is "".
	Count int

	rounds rounds // empty if nothing is known of them
}

// Traces describes the rounds of the operation, and each node's vote as far as it is known by now. Of
// a long wait, these are the last 32 rounds. It may be called until OperationEnded returns.
func (r OperationResult) Traces() []Trace { return r.rounds.traces() }

// LockEnd reports the end of a lock.
type LockEnd struct {
	Key  string
	Held time.Duration // since the acquisition, by the Redlock's clock
	// Cause is ErrReleased, ErrDetached or ErrClosed if the holder ended the lock. It is ErrExpired or
	// ErrNotHeld if the lock was lost, also if only its Release found that.
	Cause error
}

// Lost reports whether the lock was lost, so that the holder may have worked unprotected.
func (e LockEnd) Lost() bool { return e.Cause == ErrExpired || e.Cause == ErrNotHeld }

// NodeVote is one node's vote in one round.
type NodeVote struct {
	Node    int           // the node's place in the list of New or Open, from 0
	Addr    string        // the node's address, as in errors
	Op      string        // the round's operation, as Trace.Op
	Key     string        // without Config.KeyPrefix
	Vote    quorum.Vote   // Granted, Refused or Failed
	Latency time.Duration // from before the round's first byte was sent until the vote was read
	// Err is why the node refused or failed; nil for a grant. If the caller had left before the node
	// answered, it says no more than that.
	Err error
	// Count is 1, or more: the Observer was so slow that votes of the node, with the same Op and Vote,
	// were merged. Latency is then their mean, Err that of the last, and Key is "".
	Count int
}

// Quarantine is a time in which the votes of a server do not count.
type Quarantine struct {
	Node   int       // the node's place in the list of New or Open, from 0
	Addr   string    // the node's address, as in errors
	Server string    // the server's address; behind a Cluster a node has several servers
	Until  time.Time // by the Redlock's clock
	Why    string    // "restarted 1.2s ago", or "another server took over 1.2s ago"
}

// NoObserver is an Observer that does nothing, for embedding.
type NoObserver struct{}

func (NoObserver) AcquireBegan(ctx context.Context, _ Operation) context.Context { return ctx }
func (NoObserver) OperationEnded(context.Context, OperationResult)               {}
func (NoObserver) LockEnded(context.Context, LockEnd)                            {}
func (NoObserver) NodeVoted(context.Context, NodeVote)                           {}
func (NoObserver) QuarantineBegan(Quarantine)                                    {}
func (NoObserver) QuarantineEnded(Quarantine)                                    {}
