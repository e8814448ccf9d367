package sim

import (
	"strconv"
	"time"
)

// shortRetention is the FenceRetention of some clients: shorter than that of others, and
// longer than anything that a run needs a fence for.
const shortRetention = time.Hour

// drawRetentions gives half of the clients a shorter FenceRetention than the default.
func (p *Plan) drawRetentions() {
	for i := range p.Clients {
		if stream(p.Config.Seed, "retention", i).IntN(2) == 0 {
			p.Clients[i].Retention = shortRetention
		}
	}
}

// retained says what a command must not have done with how long a node keeps a fence:
// nothing shortens that. The world's mu is held.
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
