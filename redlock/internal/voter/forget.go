package voter

import (
	"slices"
	"time"
)

// KeepMasters is called with the addresses of a Cluster's masters when these change. It forgets
// the servers behind the node that have not been among them for longer than a quarantine lasts.
// So the Guard remembers the Cluster's masters, and the addresses that masters left within the
// last quarantine.
//
// A server that comes to a forgotten address counts as one that is met for the first time. If
// the address were remembered, the server would be quarantined unless it is the one that was
// there before. That quarantine would be for the keys that the earlier server granted while it
// was one of the Cluster's masters, and all of them have expired by now. A quarantine of the
// earlier server itself has ended too: it began within granularity of its last reply. Guard.known
// still records that the node had a server. So a promoted server does not count at once because no
// other is remembered.
//
// A server is kept while another node's server is its duplicate, until that one identifies
// itself again.
func (g *Guard) KeepMasters(node int, addrs map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.nodes[node] = slices.DeleteFunc(g.nodes[node], func(s *Server) bool {
		switch {
		case addrs[s.addr]:
			s.gone = time.Time{}
			return false
		case s.gone.IsZero():
			s.gone = now
			return false
		case now.Before(s.gone.Add(granularity).Add(g.span())) || g.hasDuplicate(s):
			return false
		}
		if s.duplicateOf != nil {
			g.duplicates.Add(-1)
		}
		return true
	})
}

// hasDuplicate reports whether another node's server is a duplicate of s. The caller holds mu.
func (g *Guard) hasDuplicate(s *Server) bool {
	for node, others := range g.nodes {
		if node == s.node {
			continue // a duplicate is behind another node; this list is being changed
		}
		for _, o := range others {
			if o.duplicateOf == s {
				return true
			}
		}
	}
	return false
}
