package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/redlock/redlock"
)

// Errors of this package, for errors.Is.
var (
	// ErrNoLeader means that no client has the lock of the election on a majority of the nodes.
	ErrNoLeader = errors.New("election: no leader")

	// ErrNotLeader means that this Election has no term that is still valid.
	ErrNotLeader = errors.New("election: not the leader")
)

// Election is a candidate and an observer in the election of a name. It is safe for concurrent use.
// It holds no goroutine and no connection of its own, so it needs no Close.
type Election struct {
	locks *redlock.Redlock
	name  string
	ttl   time.Duration
	wrong error // names an argument of New that is wrong; nil if there is none

	leading chan struct{} // holds a token while Lead is called

	mu    sync.Mutex
	terms []*redlock.Lock // those that may still be valid; the last is the one that began last
}

// New makes an Election. The name is the key of its lock: give it to `redlock status` or Inspect to
// see the leader. Other locks on the masters must not have the same key, so begin the name with
// "leader:" or the like. All processes that elect one leader give the same name, masters and ttl.
//
// The ttl bounds two times. If the leader dies, the next can follow when the ttl is over. If no
// majority of the masters answers for so long, less the drift, the leader loses its term. Renewals
// cost next to nothing, so it need not match the length of a term; ten seconds is a good start.
//
// New asks no node. If an argument is wrong, each method returns an error that names it: locks is
// nil or not made by redlock.New or redlock.Open, the name is empty or reserved, or the ttl is out
// of the range that redlock.Redlock.Acquire accepts.
func New(locks *redlock.Redlock, name string, ttl time.Duration) *Election {
	e := &Election{locks: locks, name: name, ttl: ttl, leading: make(chan struct{}, 1)}
	switch {
	case locks == nil:
		e.wrong = errors.New("election: locks is nil")
	case name == "":
		e.wrong = errors.New("election: name is empty")
	default:
		e.wrong = refused(locks, name, ttl)
	}
	return e
}

// refused returns the error with which locks refuses a name or a ttl. The limits depend on its
// configuration. With a context that has ended, an acquisition checks its arguments and asks no
// node.
func refused(locks *redlock.Redlock, name string, ttl time.Duration) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	accepted := errors.New("the arguments are right")
	cancel(accepted)
	_, err := locks.TryAcquire(ctx, name, ttl)
	if errors.Is(err, accepted) || errors.Is(err, redlock.ErrClosed) {
		return nil
	}
	return fmt.Errorf("election: %w", err)
}

// check returns the error of a call that cannot be made.
func (e *Election) check(ctx context.Context) error {
	switch {
	case e == nil || e.leading == nil:
		return errors.New("election: not made by New")
	case e.wrong != nil:
		return e.wrong
	case ctx == nil:
		return errors.New("election: ctx is nil")
	}
	return nil
}

// Campaign waits until this process leads, and returns the term: a lock that is kept alive until
// the caller releases it. Its Context ends with the term, and its FencingToken is that of the term.
// The caller must stop what a leader does when that context is done, and release the lock only
// after that. Lead does both.
//
// Campaign waits as Redlock.Acquire does: in a queue, also through times without a quorum, until
// ctx ends. It returns the errors of Acquire. The end of ctx does not end a term that has begun.
//
// A second Campaign of the process, on this Election or on another one of the same Redlock and
// name, waits until the first term has ended, and then has a term of its own. If ctx carries the
// first term, so that the caller would wait for itself, Campaign returns redlock.ErrReentrant at
// once, or, with redlock.Config.Reentrant, a term that is nested in the first: it has the same token,
// and ends with the first at the latest.
func (e *Election) Campaign(ctx context.Context) (*redlock.Lock, error) {
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	term, err := e.locks.Acquire(ctx, e.name, e.ttl)
	if err != nil {
		return nil, err
	}
	term.KeepAlive()
	e.mu.Lock()
	defer e.mu.Unlock()
	// Of two goroutines whose terms followed one another, the later may have come here first. So
	// an older term that is still valid is kept.
	e.terms = append(slices.DeleteFunc(e.terms, func(l *redlock.Lock) bool { return !l.Valid() }), term)
	return term, nil
}

// IsLeader returns nil if this Election leads and ctx has not ended. It leads if a term from its
// Campaign or Lead is valid now, by redlock.Lock.Valid. If not, the error matches ErrNotLeader, and
// the reason why the last term
// ended, if there was one: redlock.ErrReleased, ErrDetached, ErrNotHeld, ErrExpired or ErrClosed.
//
// It asks no node and does not wait. Call it right before each action that only a leader may take.
// Other Elections do not count, even with the same Redlock and name.
//
// If ctx has ended, IsLeader returns an error that matches ErrNotLeader and ctx's cause. So work
// that goes on after its own term has ended, and that passes on the context of that term, is not
// taken for the work of a later term.
func (e *Election) IsLeader(ctx context.Context) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	terms := slices.Clone(e.terms)
	e.mu.Unlock()
	if len(terms) == 0 {
		return fmt.Errorf("%w of %q: no term has begun", ErrNotLeader, e.name)
	}
	// First the terms, as Valid ends the context of a term that has expired.
	leads := slices.ContainsFunc(terms, (*redlock.Lock).Valid)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w of %q: %w", ErrNotLeader, e.name, context.Cause(ctx))
	case !leads:
		return fmt.Errorf("%w of %q: %w", ErrNotLeader, e.name, context.Cause(terms[len(terms)-1].Context()))
	}
	return nil
}
