package redlock

import (
	"slices"
	"time"
)

// keep forgets the servers behind a Cluster that have not been among its masters, whose
// addresses are given, for longer than a quarantine lasts. So the records are those of its
// masters, and of the addresses that masters left within the last quarantine.
//
// A server that comes to a forgotten address is met for the first time, as one at a new
// address is. With the record it would be quarantined if it is not the server that was
// there. That is for what the old server granted while it was one of the Cluster's masters,
// and this is over by now. The record's own quarantine is over too: it began granularity
// after the server was last heard at the latest. Whether any server behind the node was
// known is remembered (behind), so a promoted server does not count at once for want of
// records.
//
// A record that another node's server is a duplicate of stays until that one is looked at
// again.
func (g *guard) keep(node int, masters map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.nodes[node] = slices.DeleteFunc(g.nodes[node], func(s *server) bool {
		switch {
		case masters[s.addr]:
			s.gone = time.Time{}
			return false
		case s.gone.IsZero():
			s.gone = now
			return false
		case now.Before(s.gone.Add(granularity).Add(g.span())) || g.hasTwin(s):
			return false
		}
		if s.twin != nil {
			g.twins.Add(-1)
		}
		return true
	})
}

// hasTwin reports whether another node's server is a duplicate of this one; mu is held.
func (g *guard) hasTwin(s *server) bool {
	for node, others := range g.nodes {
		if node == s.node {
			continue // a duplicate is another node's; this list is being changed
		}
		for _, o := range others {
			if o.twin == s {
				return true
			}
		}
	}
	return false
}
