package waitqueue

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// foreign finds out whether the key is shared with clients of another library, which wake nobody
// when they release it. A waiter that only reacts to wake-ups would starve beside them.
//
// The sign: the first in the queue sees the key in the hands of one holder, and later of
// another, and no node has woken it in between. A client of this library would have woken it.
// The waiter then tries as often as a client that polls.
//
// A lost message looks the same, and so does a lock that expired and was taken by a newcomer.
// Polling costs commands and nothing else, so a mistake is harmless.
type foreign struct {
	first   bool      // nobody was ahead in the queue when a node answered last
	holders []int64   // digests of the values that have had the key since the last wake-up
	since   time.Time // when the first of those was seen
	suspect time.Time // when the key was seen to have changed hands without a wake-up; zero: it was not
	seen    time.Time // when a suspicion was last confirmed; zero: never
}

const (
	// onePicture is for how long answers may show nodes with different values of one moment, and
	// how much longer than an answer a wake-up may take.
	onePicture = 200 * time.Millisecond
	// foreignFor is for how long such clients are expected after the last sign of them. They
	// may hold the key for long, and are seen only when they pass it on.
	foreignFor = time.Minute
	// maxHolders bounds the memory. A picture with more values proves nothing.
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

// confirmed reports that a suspicion has become certain, as no wake-up has come in time.
func (f *foreign) confirmed(now time.Time) bool {
	if f.suspect.IsZero() || now.Sub(f.suspect) < onePicture {
		return false
	}
	f.suspect, f.seen = time.Time{}, now
	return true
}

// near reports whether such clients are expected.
func (f *foreign) near(now time.Time) bool {
	return !f.seen.IsZero() && now.Sub(f.seen) < foreignFor
}
