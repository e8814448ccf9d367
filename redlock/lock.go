package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
	"github.com/quorumlock/redlock/redlock/internal/schedule"
	"github.com/quorumlock/redlock/redlock/internal/waitqueue"
)

// Lock is a held lock. It ends when it is released, when it is found lost, or when its validity is
// over, whichever comes first. A lock that has ended is never held again. A Lock is safe for
// concurrent use. Config.Reentrant says how a nested lock differs.
type Lock struct {
	r       *Redlock
	key     string
	nodeKey any // string: with Config.KeyPrefix, as the nodes name it
	value   string
	fence   *protocol.Fence // nil without fencing
	values  context.Context // gives the lock's context its values, and nothing else

	outer  *Lock        // the lock that this one is nested in, and whose mu guards its fields; nil: none
	nested *nestedLocks // nil until one joins

	// order is held while a round of this lock is handed to the lanes, which never waits for a
	// node. It keeps a renewal or a top-up from being sent after the release. Lock it before mu.
	order     sync.Mutex
	proposals proposals // of the attempt that led to the lock; zero once they were all sent
	toppedUp  bool      // nodes that the proposals did not reach may have the key
	// underWay are the extensions and top-ups that not all lanes have finished with.
	underWay  []*quorum.Round[protocol.Operation]
	detaching bool // Detach waits, and top-ups are still sent

	mu        sync.Mutex
	until     time.Time
	ttl       time.Duration // the last one asked for
	keysUntil time.Time     // until when one of the lock's keys can live on any node
	cause     error         // why it ended; nil while it is held
	released  bool          // the release has been started, or the lock was detached
	ctx       context.Context
	cancel    context.CancelCauseFunc
	cancelDo  context.CancelCauseFunc // ends the context of the function that Do runs

	began     time.Duration // when it was acquired, since Redlock.made
	keepAlive bool
	inRenewal bool          // a renewal is under way
	reports   *breakReports // nil until the first renewal

	wait      *wait                     // the wait that led to the lock; nil if there was none
	localLock waitqueue.LocalLock[wait] // lets the local queue go on once the lock is over

	scheduled schedule.Entry // when the lock ends and is renewed
}

// Key returns the locked key, without Config.KeyPrefix.
func (l *Lock) Key() string { return l.key }

// Value returns the string that the nodes store under the key: a random UUID, when the lock was
// asked for, and Config.Owner. A client that knows it can release the lock: treat it as a secret.
func (l *Lock) Value() string { return l.value }

// FencingToken returns a number that is higher than that of every earlier lock on the key. With it
// the protected resource can refuse an old holder (package fence). It stays the same for the life
// of the lock, and is below 2^53. Without Config.Fencing it is 0.
func (l *Lock) FencingToken() int64 {
	if l.fence == nil {
		return 0
	}
	return l.fence.Token.(int64)
}

// String names the lock without its value, so that a lock may be logged.
func (l *Lock) String() string { return fmt.Sprintf("redlock.Lock(%q)", errs.Short(l.key)) }

// GoString is String, for %#v.
func (l *Lock) GoString() string { return l.String() }

// LogValue is String, for log/slog.
func (l *Lock) LogValue() slog.Value { return slog.StringValue(l.String()) }

// Until returns the end of the lock's validity on the Redlock's clock. Before it no other client
// can acquire the key, as long as the assumptions in docs/safety.md hold.
func (l *Lock) Until() time.Time {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	return outer.until
}

// Valid reports whether the lock is still held, as far as this process knows: the lock has not
// ended, and the Redlock's clock has not reached Until. It asks no node. It is never late: it reads
// the clock itself, and reports false from Until on even if nothing else has noticed yet, as after
// a pause of the process. In that case it ends the lock, so that its Context is done with
// ErrExpired when Valid returns. A lock that is not valid never becomes valid again.
//
// Call Valid right before each action that the lock protects; that is the shortest way from reading
// the clock to the action. A process that is paused in between still acts late. Only a fencing token
// prevents that. On Linux the clock stands still while the machine is suspended, so Valid does not
// notice that time.
func (l *Lock) Valid() bool {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	outer.expireIfDue(l.r.cfg.Clock.Now())
	return l.cause == nil
}

// Context returns a context that is done when the lock is released, lost or out of validity. Its
// context.Cause says which: ErrReleased, ErrDetached, ErrNotHeld, ErrExpired or ErrClosed. It carries
// the values of the context that the lock was acquired with, and the lock itself, for FromContext.
//
// It has neither the deadline nor the end of the context that the lock was acquired with: it
// outlives a request, and KeepAlive renews the lock until it is released. The example shows work
// that ends with either of the two. Do does that in one call.
//
// A goroutine ends the context at Until, by a timer. The delay depends on the scheduler and is
// usually some microseconds. But the goroutine waits for a processor like any other, and a process
// that was stopped can act once more before the goroutine runs. Where such a delay can exceed the
// drift margin, call Valid before each action. docs/safety.md has measurements.
func (l *Lock) Context() context.Context {
	outer := l.outermost()
	outer.mu.Lock()
	defer outer.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(&lockContext{context.WithoutCancel(l.values), l})
		if l.cause != nil {
			l.cancel(l.cause)
		}
	}
	return l.ctx
}

// Extend makes the lock valid for ttl from now, on a majority of the nodes. It never shortens the
// validity: if ttl would end sooner than Until, Until stays as it is. Extend takes one round trip,
// and never longer than Config.NodeTimeout or until ctx ends.
//
// Errors:
//
//   - ErrNotHeld: so many nodes no longer have the lock's value that no majority can have it. The
//     lock has ended.
//   - ErrExpired: the validity ended before the nodes answered. The lock has ended.
//   - ErrNoQuorum: too few nodes answered. The lock goes on until Until, which is as it was, though
//     some keys may live longer.
//   - ctx's cause: ctx ended before the result was certain. The lock goes on in the same way.
//
// If the lock had ended before, Extend returns its cause and asks no node. An error that names an
// argument changes nothing.
func (l *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if ctx == nil {
		return errNilContext
	}
	ttl, err := l.r.cfg.checkTTL(ttl)
	if err != nil {
		return err
	}
	o := l.r.reporter.observe(ctx, OpExtend, l.key, ttl, time.Time{})
	err = l.extend(ctx, ttl, o)
	if o != nil {
		o.ended(l.r.cfg.Clock.Now(), err)
	}
	return err
}

// extend makes the extension, as an operation that Close waits for.
func (l *Lock) extend(ctx context.Context, ttl time.Duration, o *observed) error {
	if err := l.r.enter(); err != nil {
		return l.opError("extend", err)
	}
	defer l.r.operations.Done()
	outer := l.outermost()
	op := outer.operation(protocol.Extend, ttl)
	op.Context = ctx
	round, err := outer.startExtend(op, ttl, l, nil)
	if err != nil {
		return l.opError("extend", err)
	}
	round.Wait(ctx)
	o.decided(round)
	left, err := outer.extended(round, ttl)
	if o != nil {
		o.left = left
	}
	if err == nil && l.outer != nil {
		err = l.ended("extend") // a nested lock may have been released meanwhile
	}
	if failed, ok := err.(*QuorumError); ok {
		failed.Cause = context.Cause(ctx)
	}
	return err
}

// Release gives the lock up: its context ends, and the key is deleted on every node that has the
// lock's value. Release takes one round trip, and never longer than Config.NodeTimeout. It does not
// use ctx, and runs even if ctx has ended. If connections break, so that there is no majority, it
// asks those nodes again within that time. Nodes that do not answer are asked again in the
// background until the ttl of the key is over.
//
// The lock has ended whatever Release returns:
//
//   - nil: a majority had the lock's value until now, so the lock was held to the end.
//   - ErrNotHeld: so many nodes no longer had the lock's value that no majority could have it.
//   - ErrExpired: a majority had the value, but the validity was over.
//   - ErrNoQuorum: too few nodes answered. On the others the keys may live until their ttl is over.
//
// If the lock was lost before, the error also matches the cause of that loss. A second Release
// returns ErrReleased and asks no node. So does a Release after Detach, which returns ErrDetached.
// Release of a nested lock asks no node either; see Config.Reentrant.
func (l *Lock) Release(ctx context.Context) error {
	if l.outer != nil {
		return l.releaseNested()
	}
	return l.giveUp(ctx, l.operation(protocol.Release, 0))
}

// giveUp ends the lock with a Release or a Retain. A lost lock is released in any case.
func (l *Lock) giveUp(ctx context.Context, op protocol.Operation) error {
	if ctx == nil {
		ctx = context.Background() // Release does not use it, but an Observer may
	}
	op.Context = ctx
	now := l.r.cfg.Clock.Now()
	o := l.r.reporter.observe(ctx, OpRelease, l.key, 0, now)
	ended, err := l.sendGiveUp(op, now, o)
	cause := ErrReleased
	if errors.Is(err, ErrNotHeld) {
		cause = ErrNotHeld
	}
	if ended {
		l.r.counters.ended(cause)
	}
	if o == nil {
		return err
	}
	now = l.r.cfg.Clock.Now()
	if ended {
		defer l.r.reporter.released(ctx, l.endedBy(cause, now)) // also if the Observer ends the goroutine
	}
	o.ended(now, err)
	return err
}

// sendGiveUp is giveUp, begun at now, as an operation that Close waits for. ended reports that the lock
// had not ended before.
func (l *Lock) sendGiveUp(op protocol.Operation, now time.Time, o *observed) (ended bool, err error) {
	if err := l.r.enter(); err != nil {
		l.endNow(err) // Close, which is under way, releases it
		return false, l.opError(op.Kind.String(), err)
	}
	defer l.r.operations.Done()

	l.mu.Lock()
	l.expireIfDue(now)
	lost := l.cause
	l.mu.Unlock()
	if lost != nil {
		op.Kind = protocol.Release
	}
	round, ended := l.startEnd(ErrReleased, op)
	if round == nil {
		return false, l.opError(op.Kind.String(), l.givenUp())
	}
	round.Wait(context.Background())
	o.decided(round)
	if round.Replied(protocol.Woke) {
		l.r.handoffs.Note(l.key, l.r.cfg.Clock.Now())
	}
	l.r.local.Pass(&l.localLock)

	tally := round.Tally()
	if op.Kind == protocol.Retain && tally.Rejected() {
		l.releaseRest(op.Until)
	}
	switch {
	case tally.Outcome() == quorum.Won && lost == nil:
		return ended, nil
	case tally.Outcome() == quorum.Won:
		return ended, l.r.quorumError(round, lost, nil)
	case tally.Rejected():
		return ended, l.r.quorumError(round, ErrNotHeld, lost)
	default:
		return ended, l.r.quorumError(round, ErrNoQuorum, lost)
	}
}
