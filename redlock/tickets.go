package redlock

import (
	"strconv"
	"sync"
)

// tickets hands out the places in all queues, in the order of time. Where another
// client's clock turns out to be ahead of ours we go by that one: if not, our tickets
// would be below those of others who came before us.
type tickets struct {
	mu    sync.Mutex
	last  int64
	ahead int64 // microseconds that the fastest clock is ahead of ours
}

const (
	minTicket = 100_000_000_000_001 // see wake.lua
	maxTicket = 1<<53 - 1           // the highest whole number that a score tells from the next
	mostAhead = 24 * 3600 * 1e6     // microseconds
)

func (t *tickets) next(now int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = min(max(now+t.ahead, t.last+1, minTicket), maxTicket)
	return t.last
}

// behind takes note of a ticket of somebody else, and reports whether his clock is
// ahead of ours. One that is a day ahead is not right, or it is no ticket: to go by that
// would let everybody else do so too.
func (t *tickets) behind(ticket, now int64) bool {
	if ticket-now > mostAhead {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if ticket <= now+t.ahead {
		return false
	}
	t.ahead = ticket - now + 1
	return true
}

func ticketText(ticket int64) string { return strconv.FormatInt(ticket, 10) }
