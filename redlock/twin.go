package redlock

import "fmt"

// findTwin looks for the server behind another node; mu is held. Of two nodes that are
// one server, the first to say so keeps its votes until its connection breaks or it is
// found to be another. Then the server may have moved to the other node, as with a dead
// node whose address was given to a spare, and that node's votes count.
//
// A round that had the first node's vote may have the other's too: it began before the
// server moved. So this does not decide what a round counts. The round does, by the
// server's run id: see quorum.Call.By.
func (g *guard) findTwin(s *server) {
	before := s.twin
	s.twin = nil
	defer func() {
		// In one step: others read the number without mu, and must not find a 0 in between.
		switch {
		case before == nil && s.twin != nil:
			g.twins.Add(1)
		case before != nil && s.twin == nil:
			g.twins.Add(-1)
		}
	}()
	for node, others := range g.nodes {
		for _, o := range others {
			if node == s.node || !o.known || o.left || o.twin != nil || o.run != s.run {
				continue
			}
			s.twin = o
			if before != o {
				g.journal.warn("one server is listed as two nodes", "nodes", []string{o.name, s.name})
			}
			return
		}
	}
}

// leave notes that the node's connection to the server broke.
func (s *server) leave() {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.left = true
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
			if s.twin != nil && s.gone.IsZero() {
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
