package sim

import (
	"strconv"
	"time"
)

// shortRetention is the FenceRetention of some clients. It is shorter than that of the
// others, and longer than a run needs a fence.
const shortRetention = time.Hour

// drawRetentions gives half of the clients a shorter FenceRetention than the default.
func (p *Plan) drawRetentions() {
	for i := range p.Clients {
		if stream(p.Config.Seed, "retention", i).IntN(2) == 0 {
			p.Clients[i].Retention = shortRetention
		}
	}
}

// retained returns what a command did wrong with how long a node keeps a fence, or "". No
// command may shorten that time. The world's mu is held.
func (w *world) retained(place storage, fence string, until time.Duration) (wrong string) {
	before := w.retentions[place]
	if _, err := strconv.ParseInt(fence, 10, 64); err != nil {
		delete(w.retentions, place)
		return ""
	}
	w.retentions[place] = until
	// The script reads a ttl in whole milliseconds.
	if until < before-time.Millisecond {
		return "shortened how long the fence is kept by " + (before - until).String()
	}
	return ""
}
