// Package subject wraps the compared libraries, each with the settings that its own users
// would choose, behind one small interface. It adds two bounds that no lock can beat: [floor]
// and [Ceiling].
//
// The wrapping adds no cost for a library: a [Caller] keeps the lock between acquisition and
// release in a field, so a cycle allocates neither a closure nor an interface value.
package subject

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quorumlock/redlock/bench/result"
)

// TTL is the ttl of every lock, except for those with a guard. It is so long that no lock
// expires in a turn.
const TTL = 10 * time.Second

// ErrHeld is the error of the bounds if another client has the key. Libraries have their own
// errors for it; see [Spec.Refused].
var ErrHeld = errors.New("held by another client")

// Locker is one client of a library, as a process would have one.
type Locker interface {
	// Caller returns a view of the client for one goroutine.
	Caller() Caller
	// Close closes the connections. No call may be under way.
	Close() error
}

// Caller acquires one lock at a time and releases it. It belongs to one goroutine.
type Caller interface {
	// Acquire makes one attempt. If the subject was opened by [Spec.Wait], it waits until it
	// has the key or ctx ends.
	Acquire(ctx context.Context, key string) error
	// Release releases the lock of the last Acquire. It may be called only after an Acquire
	// that succeeded.
	Release(ctx context.Context) error
}

// Target is where locks live.
type Target struct {
	Addrs   []string // host and port of each master
	Callers int      // the most goroutines that call at the same time, for the size of pools
	Sent    *Sent    // counts the commands that are sent, except by the bounds; may be nil
}

// dialer returns the dialer for a go-redis client: nil, which is go-redis's own, if nothing is
// counted.
func (t Target) dialer() func(context.Context, string, string) (net.Conn, error) {
	if t.Sent == nil {
		return nil
	}
	return t.Sent.dial
}

// Spec describes how to open a subject, and how its locks look on the masters.
type Spec struct {
	Name result.Subject
	Open func(Target) (Locker, error)
	// Wait opens the subject for callers that wait for a held key. It is nil for subjects that
	// are not compared in this.
	Wait func(Target) (Locker, error)
	// OneMaster subjects use only the first of the masters.
	OneMaster bool
	// Keys returns the names under which a master has a held lock.
	Keys func(key string) []string
	// Refused reports whether an error of Acquire means that another client has the key.
	Refused func(error) bool
	// LeavesStragglers means that the subject may leave keys on healthy masters by design.
	// They are reported, and are not a failure of the comparison.
	LeavesStragglers bool
	// AbandonsKeys means that the subject may leave a key of an attempt under way when a
	// waiting caller's context ends. That is reported too.
	AbandonsKeys bool
	// Stays lists the prefixes of keys that outlive the locks. The comparison deletes these
	// keys itself.
	Stays []string
	// Guard, if set, is how long this subject counts no votes of a master that has just
	// started. It is also the ttl of its locks.
	Guard time.Duration
}

// LockTTL returns the ttl of the subject's locks.
func (s Spec) LockTTL() time.Duration {
	if s.Guard > 0 {
		return s.Guard
	}
	return TTL
}

// Uptime returns the uptime that masters must report before this subject counts their votes.
// It exceeds the guard, because the uptime is in whole seconds, one of which may be too many,
// and the guard has a margin for clock drift.
func (s Spec) Uptime() time.Duration {
	if s.Guard == 0 {
		return 0
	}
	return s.Guard + 2*time.Second
}

// Patience returns how long masters have to execute everything that a subject has sent them.
// Keys that are left after that count as left behind. It is below the ttl, because keys would
// just expire otherwise, and short for a subject that is known to leave some.
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

// All returns the subjects: this library first, and last those that need masters with some
// uptime.
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
