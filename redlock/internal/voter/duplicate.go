package voter

import (
	"fmt"

	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// findDuplicate looks for s behind another node. If two nodes are one server, the node that
// identified it first keeps its votes until its connection breaks or another server answers
// there. After that the server may have moved to the other node, as when the address of a dead
// node was given to a spare, and the other node's votes count. The caller holds mu.
//
// A round may hold votes of both nodes if it began before the server moved. The round itself
// drops the second vote, by the server's run id: see quorum.Call.By.
func (g *Guard) findDuplicate(s *Server) {
	before := s.duplicateOf
	s.duplicateOf = nil
	defer func() {
		// Eligibility reads the number without mu, so it must not be 0 for a moment.
		switch {
		case before == nil && s.duplicateOf != nil:
			g.duplicates.Add(1)
		case before != nil && s.duplicateOf == nil:
			g.duplicates.Add(-1)
		}
	}()
	for node, others := range g.nodes {
		for _, o := range others {
			if node == s.node || !o.known || o.disconnected || o.duplicateOf != nil || o.Run != s.Run {
				continue
			}
			s.duplicateOf = o
			if before != o {
				g.log.Warn("duplicate_node", "one server is listed as two nodes", "node", s.name, "cause", "is the same server as "+o.name)
			}
			return
		}
	}
}

// Disconnected records that the node's connection to the server broke.
func (s *Server) Disconnected() {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.disconnected = true
}

// Duplicate returns an error that matches redlock.ErrDuplicateNode and names both nodes if
// two of them are one server.
func (g *Guard) Duplicate() error {
	if g.duplicates.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, servers := range g.nodes {
		for _, s := range servers {
			if s.duplicateOf != nil && s.gone.IsZero() {
				first, second := s, s.duplicateOf
				if second.node < first.node {
					first, second = second, first
				}
				return fmt.Errorf("%w: %s and %s are the same server", errs.Inline(errs.DuplicateNode), first.name, second.name)
			}
		}
	}
	return nil
}

// duplicateError is the reason why the vote of a duplicate does not count.
type duplicateError struct{ other string }

func (e duplicateError) Error() string { return "is the same server as " + e.other }
func (e duplicateError) Unwrap() error { return errs.DuplicateNode }
