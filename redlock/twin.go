package redlock

import "fmt"

// findTwin looks for the server behind another node; mu is held. Of two nodes that are
// one server, the first to say so keeps its votes until it is found to be another, so
// there is never a round in which both count.
func (g *guard) findTwin(s *server) {
	before := s.twin
	if s.twin != nil {
		s.twin = nil
		g.twins.Add(-1)
	}
	for node, others := range g.nodes {
		for _, o := range others {
			if node == s.node || !o.known || o.twin != nil || o.run != s.run {
				continue
			}
			s.twin = o
			g.twins.Add(1)
			if before != o {
				g.journal.warn("one server is listed as two nodes", "nodes", []string{o.name, s.name})
			}
			return
		}
	}
}

// duplicate is ErrDuplicateNode, with both nodes' names, if two are one server.
func (g *guard) duplicate() error {
	if g.twins.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, servers := range g.nodes {
		for _, s := range servers {
			if s.twin != nil {
				first, second := s, s.twin
				if second.node < first.node {
					first, second = second, first
				}
				return fmt.Errorf("%w: %s and %s are the same server", plain{ErrDuplicateNode}, first.name, second.name)
			}
		}
	}
	return nil
}

// twinError is a vote of a server that has one already.
type twinError struct{ other string }

func (e twinError) Error() string { return "is the same server as " + e.other }
func (e twinError) Unwrap() error { return ErrDuplicateNode }
