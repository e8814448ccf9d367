package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Violation is something that must not have happened.
type Violation struct {
	At    time.Duration // when it could first be seen
	Rule  string        // the broken rule
	Key   string
	Text  string
	Locks []Lock // the locks concerned; of two, the earlier holder first
}

func (v Violation) String() string { return fmt.Sprintf("%v %s: %s", v.At, v.Rule, v.Text) }

// The rules of this package. Packages that make runs add rules of their own.
const (
	Exclusion = "exclusion"
	Model     = "model"
	Context   = "context"
	Fencing   = "fencing"
)

// Check judges events, which must be in the order of [Log.Events], by what clients believed
// of their own locks: holds of one key must not overlap, some order of the operations must
// fit the results of Release and Extend, and fencing tokens must grow. It needs only true
// times, so it suits servers and processes as well as simulations.
func Check(events []Event) []Violation {
	violations := append(overlaps(Locks(events)), disorder(events)...)
	violations = append(violations, backwards(events)...)
	slices.SortStableFunc(violations, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return violations
}

// overlaps finds holds of one key that overlap in true time. A hold begins when the lock is
// handed out. It ends when its release is called or its validity ends, whichever comes
// first.
func overlaps(locks []Lock) []Violation {
	var found []Violation
	latest := map[string]Lock{} // by key: the hold that ends last so far
	for _, l := range locks {
		before, any := latest[l.Key]
		if any && l.Granted < before.End() && l.Granted < l.Until {
			found = append(found, Violation{
				At: l.Granted, Rule: Exclusion, Key: l.Key, Locks: []Lock{before, l},
				Text: fmt.Sprintf("%v of %q begins %v before %v ends", l, l.Key, before.End()-l.Granted, before),
			})
		}
		if !any || l.End() > before.End() {
			latest[l.Key] = l
		}
	}
	return found
}

// CheckContexts finds locks whose context was not done when the next holder got the key. A
// client that stood still when its hold ended could not notice that: until it wakes its
// lock is judged by Until alone. The check needs instants that are exact to less than the
// margin for drift, so it suits only virtual time.
func CheckContexts(events []Event) []Violation {
	var found []Violation
	latest := map[string]Lock{} // by key: the holder whose context was done last
	for _, l := range Locks(events) {
		before, any := latest[l.Key]
		if any && l.Granted < before.Ended && !asleep(events, before.Client, before.End(), l.Granted) {
			found = append(found, Violation{
				At: l.Granted, Rule: Context, Key: l.Key, Locks: []Lock{before, l},
				Text: fmt.Sprintf("the context of %v was not done when %v was granted", before, l),
			})
		}
		if !any || l.Ended > before.Ended {
			latest[l.Key] = l
		}
	}
	return found
}

// waking is longer than a client takes to resume all its parts.
const waking = time.Millisecond

// asleep reports whether the client stood still at from and has not woken before to.
func asleep(events []Event, client int, from, to time.Duration) bool {
	paused, awake := Never, from
	for _, e := range events {
		switch {
		case e.Client != client:
		case e.Kind == Paused || e.Kind == Died || e.Kind == Closed: // the dead notice nothing either
			paused = min(paused, e.At)
		case e.Kind == Started:
			if e.At <= from { // the hold is the new process's
				paused = Never
			}
		case e.Kind == Resumed:
			if paused <= awake && e.At >= from {
				awake = e.At + waking
			}
			paused = Never
		}
	}
	return paused <= awake || awake > from && to < awake
}
