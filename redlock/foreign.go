package redlock

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// foreign finds out whether clients share a key that wake nobody when they release it:
// those of another library. A waiter that only reacts to wakes would starve beside them.
//
// The evidence: the first in the queue sees the key in the hands of one holder, and later
// of another, and no node has woken it in between. A client of this library would have
// woken it. The waiter then tries at the pace of a client that polls.
//
// A message that was lost looks the same, and so does a lock that expired and was taken by
// a newcomer. Polling costs no more than commands, so an error is harmless.
type foreign struct {
	first   bool      // nobody was ahead in the queue when a node answered last
	holders []int64   // digests of the values that have had the key since the last wake
	since   time.Time // when the first of those was seen
	suspect time.Time // when the key was seen to have changed hands without a wake; zero: it was not
	seen    time.Time // when there was evidence last; zero: never
}

const (
	// onePicture is for how long answers belong to one picture of the nodes, which may have
	// different values at a time; and how long a wake may take longer than an answer.
	onePicture = 200 * time.Millisecond
	// foreignFor is for how long such clients are reckoned with after the last evidence.
	// They may hold the key for long, and it can be seen only when they pass it on.
	foreignFor = time.Minute
	// maxHolders bounds the memory. A picture with more values proves nothing.
	maxHolders = 16
)

// heard takes the answer of a node.
func (f *foreign) heard(q protocol.QueueReply, now time.Time) {
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

// woken takes note that a node has woken the waiter: whoever released the key, wakes.
func (f *foreign) woken() { f.forget() }

func (f *foreign) forget() { f.holders, f.suspect = f.holders[:0], time.Time{} }

// found reports that a suspicion has become evidence by now, and takes note of it.
func (f *foreign) found(now time.Time) bool {
	if f.suspect.IsZero() || now.Sub(f.suspect) < onePicture {
		return false
	}
	f.suspect, f.seen = time.Time{}, now
	return true
}

// near reports whether such clients are to be reckoned with.
func (f *foreign) near(now time.Time) bool {
	return !f.seen.IsZero() && now.Sub(f.seen) < foreignFor
}

// foreigners remembers the keys of which there was evidence, for the next waits.
type foreigners struct {
	mu   sync.Mutex
	keys map[string]time.Time
}

// maxForeigners bounds the memory: to forget a key costs a wait a second or two.
const maxForeigners = 1 << 12

func (f *foreigners) note(name string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil || len(f.keys) >= maxForeigners {
		f.keys = map[string]time.Time{}
	}
	f.keys[strings.Clone(name)] = now
}

// known is when there was evidence last; zero if that is too long ago.
func (f *foreigners) known(name string, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, any := f.keys[name]
	if any && now.Sub(seen) >= foreignFor {
		delete(f.keys, name)
		return time.Time{}
	}
	return seen
}
