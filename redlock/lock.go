package redlock

import (
	"context"
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

// Lock is a held lock. It ends when it is released, when it is found lost, or
// when its validity is over, whichever comes first, and never comes back. It is
// safe for concurrent use.
type Lock struct {
	r       *Redlock
	key     string
	nodeKey any // string: as the nodes name it
	value   string
	fence   *protocol.Fence // nil: without fencing
	values  context.Context // whence the context's values come, and nothing else

	// order is held while a round of this lock is handed to the lanes, which
	// never waits for a node. It keeps a renewal or a top-up from being sent
	// after the release. Lock it before mu.
	order     sync.Mutex
	proposals      // first is nil once every node has been sent all of them
	grown     bool // topped up: nodes that the proposals did not reach may have the key

	mu       sync.Mutex
	until    time.Time
	ttl      time.Duration // the last one asked for
	keys     time.Time     // until when a key of ours can live on any node
	cause    error         // why it ended; nil while it is held
	released bool          // let go of: the release has been sent
	ctx      context.Context
	cancel   context.CancelCauseFunc
	cancelDo context.CancelCauseFunc // ends the context of the function that Do runs

	keepAlive bool
	forced    *forced // nil until the first renewal

	wait   *wait // that it was won with; nil: none
	holder waitqueue.Holder[wait]

	entry schedule.Entry
}

// Key is the name of the locked resource, without Config.KeyPrefix.
func (l *Lock) Key() string { return l.key }

// Value is the random string that is the lock on the nodes. Whoever knows it can
// release the lock: treat it as a secret.
func (l *Lock) Value() string { return l.value }

// FencingToken is a number that is higher than that of every earlier lock on the key,
// for the protected resource to refuse an old holder by (package fence). It stays the
// same for the life of the lock. It is below 2^53; 0 without Config.Fencing.
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

// Until is the end of validity on the Redlock's clock. Before it no other client
// can acquire the key, as long as the assumptions in docs/safety.md hold.
func (l *Lock) Until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// Valid reports whether the lock is still held by all that this process knows: it has not
// ended, and Until is not reached on the Redlock's clock. It asks no node. It is never
// late: it reads the clock itself, and reports false from Until on even if nothing else
// has noticed yet, as after a pause of the process. It then ends the lock, whose Context is
// done with ErrExpired when Valid returns. A lock that is not valid never is again.
//
// Call it right before each action that the lock protects; that is the shortest way
// from a look at the clock to the action. A process that is paused in between acts late
// all the same, which only a fencing token prevents. On Linux the clock stands still while
// the machine is suspended, and Valid knows nothing of that time.
func (l *Lock) Valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endIfOver(l.r.cfg.Clock.Now())
	return l.cause == nil
}

// Context is done when the lock is released, lost or out of validity;
// context.Cause says which: ErrReleased, ErrNotHeld, ErrExpired or ErrClosed. It
// carries the values of the context that the lock was acquired with, and the lock
// itself, for FromContext.
//
// It has neither the deadline nor the end of the context that the lock was acquired with:
// it outlives a request, and KeepAlive renews the lock until it is released. The example
// has the pattern for work that is to end with either of the two. Do does it in one call.
//
// A goroutine ends it at Until, by a timer. How soon after Until that is depends on the
// scheduler: usually some microseconds, but the goroutine waits for a processor like any
// other, and a process that was stopped can act once more before it runs. Where such a
// delay can exceed the drift margin, call Valid before each action. docs/safety.md has
// measurements.
func (l *Lock) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(&carrier{context.WithoutCancel(l.values), l})
		if l.cause != nil {
			l.cancel(l.cause)
		}
	}
	return l.ctx
}

// Extend makes the lock valid for ttl from now, on a majority of the nodes. It
// never shortens: with a ttl that would end sooner than Until nothing changes,
// and Until stays. It takes one round trip, and never longer than
// Config.NodeTimeout or until ctx ends.
//
// Errors: ErrNotHeld if a majority no longer has our value, and ErrExpired if
// validity ended before they answered; the lock has then ended. ErrNoQuorum if
// too few nodes answered, and ctx's cause if ctx ended before that was certain:
// the lock goes on until Until, which is as it was, though some keys may live
// longer. If the lock had ended before, its cause, and nobody is asked. An error that
// names an argument changes nothing.
func (l *Lock) Extend(ctx context.Context, ttl time.Duration) error {
	if ctx == nil {
		return errNilContext
	}
	if err := l.r.enter(); err != nil {
		return l.ended("extend", err)
	}
	defer l.r.attempts.Done()
	ttl, err := l.r.cfg.checkTTL(ttl)
	if err != nil {
		return err
	}
	round, err := l.startExtend(ttl, true, nil)
	if err != nil {
		return l.ended("extend", err)
	}
	round.Wait(ctx)
	err = l.extended(round, ttl)
	if failed, ok := err.(*QuorumError); ok {
		failed.Cause = context.Cause(ctx)
	}
	return err
}

// Release gives the lock up: its context ends, and the key is deleted on every
// node that has our value. It takes one round trip, never longer than
// Config.NodeTimeout, and runs whatever ctx says; only ctx's values are used.
// If connections break, so that there is no majority, it asks those nodes again
// within that time. Nodes that do not answer are asked again in the background
// until the ttl of the key is over.
//
// The lock has ended whatever Release returns. Nil: a majority had our value
// until now, so the lock was held to the end. ErrNotHeld: a majority did not
// have it any more. ErrExpired: they had, but validity was over. ErrNoQuorum:
// too few nodes answered; keys may live on there until their ttl. If the lock
// was lost before, the error matches that cause too. A second Release returns
// ErrReleased and asks nobody.
func (l *Lock) Release(ctx context.Context) error {
	if err := l.r.enter(); err != nil {
		l.endNow(err) // Close, which is under way, releases it
		return l.ended("release", err)
	}
	defer l.r.attempts.Done()

	l.mu.Lock()
	l.endIfOver(l.r.cfg.Clock.Now())
	lost := l.cause
	l.mu.Unlock()
	round := l.letGo(ErrReleased)
	if round == nil {
		return l.ended("release", ErrReleased)
	}
	round.Wait(context.Background())
	if round.Replied(protocol.Woke) {
		l.r.handoffs.Note(l.key, l.r.cfg.Clock.Now())
	}
	l.r.local.Pass(&l.holder)

	tally := round.Tally()
	switch {
	case tally.Outcome() == quorum.Won && lost == nil:
		return nil
	case tally.Outcome() == quorum.Won:
		return l.r.quorumError(round, lost, nil)
	case tally.Rejected():
		return l.r.quorumError(round, ErrNotHeld, lost)
	default:
		return l.r.quorumError(round, ErrNoQuorum, lost)
	}
}
