// Package subject wraps what is compared, each library with the settings that
// its own users would choose, behind one small interface, and beside them two
// bounds that no lock can beat: [floor] and [Ceiling].
//
// The wrapping costs a library nothing that its user would not pay: a [Caller]
// keeps the lock between acquisition and release in a field, so that neither a
// closure nor an interface value is allocated for a cycle.
package subject

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// TTL is what every lock is acquired for, but for those with a guard: so long that
// none expires in a turn.
const TTL = 10 * time.Second

// ErrHeld is how the bounds say that somebody else has the key. Libraries have
// errors of their own for it, see [Spec.Refused].
var ErrHeld = errors.New("held by another client")

// Locker is one client of a library, as a process would have one.
type Locker interface {
	// Caller makes a view of the client for one goroutine.
	Caller() Caller
	// Close gives up the connections. Nobody may be calling any more.
	Close() error
}

// Caller acquires one lock at a time and releases it. It belongs to one
// goroutine.
type Caller interface {
	// Acquire makes one attempt; of a subject that was opened by [Spec.Wait] it
	// waits until it has the key or ctx ends.
	Acquire(ctx context.Context, key string) error
	// Release gives up what the last Acquire got. It may be called only after
	// one that succeeded.
	Release(ctx context.Context) error
}

// Target is where locks live.
type Target struct {
	Addrs   []string // host and port of each master
	Callers int      // the most goroutines that will call at a time, for the size of pools
	Sent    *Sent    // counts the commands that are sent; not by the bounds; may be nil
}

// dialer is for the options of a go-redis client: nil, its own, if nobody counts.
func (t Target) dialer() func(context.Context, string, string) (net.Conn, error) {
	if t.Sent == nil {
		return nil
	}
	return t.Sent.dial
}

// Spec says how to open a subject, and how its locks look on the masters.
type Spec struct {
	Name result.Subject
	Open func(Target) (Locker, error)
	// Wait opens it for callers who wait for what somebody else holds. Nil for
	// those that are not compared in this.
	Wait func(Target) (Locker, error)
	// OneMaster subjects use only the first of the masters.
	OneMaster bool
	// Keys are the names under which a master has a lock that is held.
	Keys func(key string) []string
	// Refused says that an error of Acquire means that somebody else has it.
	Refused func(error) bool
	// LeavesStragglers: what this subject leaves behind on healthy masters is
	// its own way of working, and is reported, not a failure of the comparison.
	LeavesStragglers bool
	// AbandonsKeys: where the context of a caller who waits ends, this subject may
	// leave a key of an attempt under way. That is reported too.
	AbandonsKeys bool
	// Stays is how the keys begin that are to outlive the locks. Somebody else has to
	// delete them.
	Stays []string
	// Guard, if set, is how long this subject counts no votes of a master that has
	// just started. It is the ttl of its locks too.
	Guard time.Duration
}

// LockTTL is the ttl of the subject's locks.
func (s Spec) LockTTL() time.Duration {
	if s.Guard > 0 {
		return s.Guard
	}
	return TTL
}

// Uptime is what masters must say of themselves before this subject counts their
// votes: in whole seconds, which may be one too many, and the guard has a margin
// for clocks that drift.
func (s Spec) Uptime() time.Duration {
	if s.Guard == 0 {
		return 0
	}
	return s.Guard + 2*time.Second
}

// Patience is how long masters have to carry out what a subject has sent them
// before what they still hold counts as left behind. It is below the ttl, or keys
// would just run out; and short for a subject that is known to leave some.
func (s Spec) Patience() time.Duration {
	if s.LeavesStragglers {
		return s.LockTTL() / 20
	}
	return s.LockTTL() / 2
}

// Of returns the Spec of a subject.
func Of(name result.Subject) (Spec, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("no subject %q", name)
}

// All lists the subjects, ours first, and last what needs masters that have been up
// for a while.
func All() []Spec {
	return []Spec{
		quorumlockSpec, redsyncSpec, redsyncFailFastSpec, redislockSpec, rueidislockSpec,
		floorSpec, ceilingSpec, fairSpec, fencedSpec, guardedSpec, bothSpec,
	}
}

func itself(key string) []string { return []string{key} }

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}
