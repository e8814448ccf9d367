package waitqueue

import (
	"sync"
	"time"
)

// tickets makes the tickets for all queues, in the order of time. They go by a clock that only
// gains: it starts with the client's own, and moves forward to each higher ticket of another
// client. Otherwise our tickets would be below those of clients that came before us, and the
// client whose clock is furthest behind would be first each time.
//
// Nothing but their order depends on tickets, so it does no harm to go by a clock that is years
// ahead. To ignore such a clock would starve clients: those that go by their own clocks are
// first each time, and a client that is far ahead never is. So the clock follows any ticket that
// leaves decades of numbers above it:
//
//   - The client's own clock counts if it shows a time between the years 1973 and 2112.
//     Otherwise tickets start with minTicket. The client overtakes the others once: from the
//     first answer on the clock follows theirs.
//   - The clock follows a ticket up to mostFollowed, in the year 2184. That is 71 years above any
//     clock that counts, and 71 years below maxTicket, where the order ends.
//   - Once started the clock runs by differences of time, which are monotonic, so to set the
//     client's clock does not move it. Otherwise clients that boot in 1970, follow the others and
//     are then set right would move the tickets of all by 50 years each time.
//
// Somebody may write other scores into the sorted set. A node takes those below minTicket for
// deadlines, and finds no waiter by them. A fraction is reported as the number below it; the
// answer to the next try shows that it is not above us. Scores above mostFollowed, and infinity,
// are behind all waiters, and a node does not report them. Redis stores no NaN.
type tickets struct {
	mu     sync.Mutex
	origin time.Time // when base was the time
	base   int64     // microseconds; zero: not started
	last   int64     // the ticket that was drawn last
}

const (
	minTicket    = 100_000_000_000_001 // see wake.lua
	maxTicket    = 1<<53 - 1           // the highest whole number that a score tells from the next
	mostCounted  = 1 << 52             // of the client's own clock
	mostFollowed = 1<<52 + 1<<51       // of another client's ticket; see queue.lua
)

// draw returns a ticket above all earlier ones.
func (t *tickets) draw(now time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = min(max(t.clock(now), t.last+1), maxTicket)
	return t.last
}

// clock returns the time that tickets go by. The caller holds mu.
func (t *tickets) clock(now time.Time) int64 {
	if t.base == 0 {
		t.origin, t.base = now, now.UnixMicro()
		if t.base < minTicket || t.base > mostCounted {
			t.base = minTicket
		}
	}
	return t.base + now.Sub(t.origin).Microseconds()
}

// follow takes another client's ticket. If that client's clock is ahead of ours, follow moves ours
// past it, and returns true.
func (t *tickets) follow(ticket int64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ours := t.clock(now)
	if ticket <= ours || ticket > mostFollowed {
		return false
	}
	t.base += ticket - ours + 1
	return true
}
