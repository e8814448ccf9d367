package history

import "fmt"

// backwards finds fencing tokens that do not grow. A resource refuses a lower token than it
// has seen. So a lock that was asked for after another was handed out must have a higher
// token, whether the other was released, has expired or is still believed to be held. Of
// two acquisitions under way at one time, the first to return may have had its effect last,
// as when its client stood still before it learned of its lock. It is only certain that
// their tokens differ; the model judges whether there is an order that fits.
//
// A lock keeps its token, also if it is resumed by a handle. A lock without one is passed over: its client has no fencing, or
// its token is unknown.
func backwards(events []Event) (found []Violation) {
	type id struct{ client, op int }
	type token struct {
		key    string
		number int64
	}
	locks := map[id]Lock{}
	for _, l := range Locks(events) {
		locks[id{l.Client, l.Op}] = l
	}
	owner := map[token]Lock{}
	top := map[string]Lock{} // by key: the lock with the highest token so far
	before := map[id]Lock{}  // the top lock of its key when each lock was asked for
	for _, e := range events {
		at := id{e.Client, e.Op}
		l, held := locks[at]
		wrong := func(of []Lock, format string, args ...any) {
			found = append(found, Violation{
				At: e.At, Rule: Fencing, Key: l.Key, Locks: append(of, l),
				Text: fmt.Sprintf("%v of %q ", l, l.Key) + fmt.Sprintf(format, args...),
			})
		}
		switch {
		case e.Kind == Asked:
			before[at] = top[e.Key]
		case !held || l.Token == 0 || e.Kind == Voted:
		case e.Kind == Granted:
			mine := token{l.Key, l.Token}
			if _, known := owner[mine]; l.Resumed && !known {
				wrong(nil, "was resumed with token %d, which no lock has had", l.Token)
			} else if l.Resumed {
				break
			}
			if other, taken := owner[mine]; taken {
				wrong([]Lock{other}, "has token %d, which %v has", l.Token, other)
			} else if first := before[at]; l.Token < first.Token {
				wrong([]Lock{first}, "has token %d, below %d of %v, which had been handed out when it was asked for", l.Token, first.Token, first)
			}
			owner[mine] = l
			if l.Token > top[l.Key].Token {
				top[l.Key] = l
			}
		case e.Token != 0 && e.Token != l.Token:
			wrong([]Lock{l}, "was handed out with token %d, and has %d now", l.Token, e.Token)
		}
	}
	return found
}
