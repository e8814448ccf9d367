package waitqueue

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// foreign finds out whether foreign clients use the key: those of another library, which wake
// nobody when they release it. A waiter that only reacts to wake-ups would starve beside them.
//
// The sign: the first waiter sees the key in the hands of one holder, and later of another, and
// no node has woken it in between. A client of this library would have woken it. The waiter then
// tries as often as a client that polls.
//
// A lost message looks the same, and so does a lock that expired and was taken by a newcomer.
// Polling costs commands and nothing else, so a mistake is harmless.
type foreign struct {
	first   bool      // the wait was the first waiter when a node answered last
	holders []int64   // digests of the values that have had the key since the last wake-up
	since   time.Time // when the first of those was seen
	suspect time.Time // when the key seemed to have changed hands without a wake-up; zero: it did not
	seen    time.Time // when such a suspicion was last confirmed; zero: never
}

const (
	// onePicture is the time within which answers of different nodes may be about one moment. It
	// is also how much later than an answer a wake-up may arrive.
	onePicture = 200 * time.Millisecond
	// foreignFor is for how long foreign clients are expected after the last sign of them. They
	// may hold the key for long, and are noticed only when it changes hands.
	foreignFor = time.Minute
	// maxHolders bounds the memory. More values within onePicture prove nothing.
	maxHolders = 16
)

// replied takes a node's reply.
func (f *foreign) replied(q protocol.QueueReply, now time.Time) {
	if q.State == protocol.StateGranted {
		return
	}
	f.first = q.Ahead == 0
	switch {
	case !f.first:
		f.forget()
	case q.Holder == 0, slices.Contains(f.holders, q.Holder):
	case len(f.holders) == 0:
		f.holders, f.since = append(f.holders, q.Holder), now
	case now.Sub(f.since) >= onePicture && f.suspect.IsZero():
		f.suspect = now
		f.holders, f.since = append(f.holders[:0], q.Holder), now
	case len(f.holders) < maxHolders:
		f.holders = append(f.holders, q.Holder)
	}
}

// forget drops the suspicion: the waiter was woken, or is not first any more.
func (f *foreign) forget() { f.holders, f.suspect = f.holders[:0], time.Time{} }

// confirmed reports, once, that no wake-up has come in time to remove a suspicion.
func (f *foreign) confirmed(now time.Time) bool {
	if f.suspect.IsZero() || now.Sub(f.suspect) < onePicture {
		return false
	}
	f.suspect, f.seen = time.Time{}, now
	return true
}

// expected reports whether foreign clients may use the key.
func (f *foreign) expected(now time.Time) bool {
	return !f.seen.IsZero() && now.Sub(f.seen) < foreignFor
}
