package history

import (
	"fmt"
	"math"
	"time"
)

// Never is later than everything.
const Never = time.Duration(math.MaxInt64)

// Lock is what a client believed about one lock it was given.
type Lock struct {
	Client, Op int
	Key        string
	Asked      time.Duration // when the client asked for it
	Granted    time.Duration // when the client got it
	Until      time.Duration // the end of its validity, after all extensions
	Releasing  time.Duration // when its release was called, or its holder's process ended; Never otherwise
	Ended      time.Duration // when its context was done, or its holder's process ended; Never otherwise
	Token      int64         // its fencing token when it was handed out; 0 is none, or unknown
	Resumed    bool          // by a handle, so it has the token of an earlier lock
	Retained   bool          // it was given up, and its key is taken until Until, whatever becomes of the client
}

// End returns when the holder could no longer believe that it held the key: it released the
// lock, or validity ended. The key of a retained lock is held until Until, by nobody.
func (l Lock) End() time.Duration { return min(l.Releasing, l.Until) }

func (l Lock) String() string { return fmt.Sprintf("client %d's lock #%d", l.Client, l.Op) }

// Locks lists the locks in events, which must be in the order of [Log.Events]. It returns
// them in the order in which they were granted.
func Locks(events []Event) []Lock {
	type id struct{ client, op int }
	var locks []Lock
	asked := map[id]time.Duration{}
	place := map[id]int{}
	for _, e := range events {
		at := id{e.Client, e.Op}
		if e.Kind == Asked {
			asked[at] = e.At
		}
		if e.Kind == Died || e.Kind == Closed {
			for i := range locks {
				if l := &locks[i]; l.Client == e.Client && !l.Retained {
					l.Releasing, l.Ended = min(l.Releasing, e.At), min(l.Ended, e.At)
				}
			}
		}
		if e.Kind == Granted {
			place[at] = len(locks)
			locks = append(locks, Lock{
				Client: e.Client, Op: e.Op, Key: e.Key,
				Asked: asked[at], Granted: e.At, Until: e.Until, Releasing: Never, Ended: Never, Token: e.Token,
				Resumed: e.Text == ByHandle,
			})
		}
		i, known := place[at]
		if !known {
			continue
		}
		l := &locks[i]
		if l.Retained {
			continue
		}
		switch e.Kind {
		case Retained:
			l.Retained, l.Until, l.Releasing = true, e.Until, Never
		case Detached:
			l.Releasing = min(l.Releasing, e.At)
		case Releasing:
			l.Releasing = min(l.Releasing, e.At)
			l.Until = max(l.Until, e.Until)
		case Extended, Renewed:
			l.Until = max(l.Until, e.Until)
		case Ended:
			l.Ended = min(l.Ended, e.At)
			l.Until = max(l.Until, e.Until)
		}
	}
	return locks
}
