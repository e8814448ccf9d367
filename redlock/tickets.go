package redlock

import (
	"sync"
	"time"
)

// tickets hands out the tickets for all queues, in the order of time. They go by a clock
// that only gains: it starts with ours, and where another client's tickets are above it we
// go by that client's clock. Otherwise our tickets would be below those of clients that came
// before us, and the client whose clock is furthest behind would be first each time.
//
// Nothing but their order depends on tickets, so it does no harm to go by a clock that is
// years ahead. Not to would starve somebody: those who go by their own clocks are first
// each time, and who is far ahead never is. So any ticket is gone by that leaves decades of
// numbers above it. What is higher than that is nobody's:
//
//   - our own clock counts if it says a time before the year 2112. If not, or if it says a
//     time before 1973, our tickets start with the lowest. That overtakes once, and with
//     the first answer we go by the others;
//   - we go by a ticket up to mostFollowed, in the year 2184. That is 71 years above any
//     clock that counts, and 71 years below maxTicket, where the order ends;
//   - once started the clock runs by differences of time, which are monotonic: that our
//     clock is set does not add to what we follow. Otherwise clients that boot in 1970,
//     follow the others and are then set right would move the tickets of all by 50 years
//     each time.
//
// Other scores in the sorted set are nobody's tickets. Those below minTicket are taken for
// deadlines, which no queue entry is found by; a fraction is gone by as the number below it,
// and the answer to the next try tells that it is not above us. Those above mostFollowed,
// infinity too, are behind everybody, and a node does not tell of them. Redis stores no NaN.
type tickets struct {
	mu     sync.Mutex
	origin time.Time // when base was the time
	base   int64     // microseconds; zero: not started
	last   int64
}

const (
	minTicket    = 100_000_000_000_001 // see wake.lua
	maxTicket    = 1<<53 - 1           // the highest whole number that a score tells from the next
	mostCounted  = 1 << 52             // of our own clock
	mostFollowed = 1<<52 + 1<<51       // of somebody else's tickets; see queue.lua
)

func (t *tickets) next(now time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = min(max(t.clock(now), t.last+1), maxTicket)
	return t.last
}

// clock returns what the clock of all tickets says; mu is held.
func (t *tickets) clock(now time.Time) int64 {
	if t.base == 0 {
		t.origin, t.base = now, now.UnixMicro()
		if t.base < minTicket || t.base > mostCounted {
			t.base = minTicket
		}
	}
	return t.base + now.Sub(t.origin).Microseconds()
}

// behind notes another client's ticket, and reports whether the clock that it went by is
// ahead of ours.
func (t *tickets) behind(ticket int64, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	ours := t.clock(now)
	if ticket <= ours || ticket > mostFollowed {
		return false
	}
	t.base += ticket - ours + 1
	return true
}
