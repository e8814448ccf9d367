package voter

import (
	"fmt"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// Quarantine is a change in the quarantine of a server.
type Quarantine struct {
	Node  int
	Addr  string    // the server's
	Until time.Time // until when its votes do not count
	Why   string
	Over  bool // the quarantine is over; otherwise it has begun, or has become longer
}

// OnQuarantine makes the guard call f when a quarantine begins and ends. It must be called before
// the first connection. f is called with the guard's mutex held, and must not block.
func (g *Guard) OnQuarantine(f func(Quarantine)) { g.onQuarantine = f }

// beginQuarantine reports a quarantine until then, and schedules the report of its end. The caller
// holds mu.
func (s *Server) beginQuarantine(now, until time.Time) {
	g := s.guard
	if g.closed {
		return
	}
	why := s.why(now)
	g.log.Warn("node_quarantined", "node quarantined", "node", s.name, "server", s.addr, "cause", why, "left", until.Sub(now))
	if g.onQuarantine != nil {
		g.onQuarantine(Quarantine{Node: s.node, Addr: s.addr, Until: until, Why: why})
	}
	if timer := g.ends[s]; timer != nil {
		timer.Reset(until.Sub(now))
	} else {
		g.ends[s] = g.clock.AfterFunc(until.Sub(now), s.endQuarantine)
	}
}

// endQuarantine reports the end of a quarantine, unless it has become longer.
func (s *Server) endQuarantine() {
	g := s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	timer, until := g.ends[s], s.quarantine()
	if timer == nil {
		return // closed
	}
	if left := until.Sub(g.clock.Now()); left > 0 {
		timer.Reset(left)
		return
	}
	delete(g.ends, s)
	g.log.Info("quarantine_over", "quarantine over", "node", s.name, "server", s.addr)
	s.quarantineOver(until)
}

func (s *Server) quarantineOver(until time.Time) {
	if s.guard.onQuarantine != nil {
		s.guard.onQuarantine(Quarantine{Node: s.node, Addr: s.addr, Until: until, Over: true})
	}
}

// Close ends the reports of quarantines. Those under way are reported as over, so that a gauge of
// them goes back.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for s, timer := range g.ends {
		timer.Stop()
		s.quarantineOver(s.quarantine())
	}
	clear(g.ends)
}

// quarantine returns the time until which votes do not count. The caller holds mu.
func (s *Server) quarantine() time.Time {
	began := s.started
	if s.changed.After(began) {
		began = s.changed
	}
	return began.Add(s.guard.span())
}

// span returns how long a quarantine lasts.
func (g *Guard) span() time.Duration { return clock.Sum(g.period, g.drift.Of(g.period)) }

// why returns the reason for a quarantine. The caller holds mu.
func (s *Server) why(now time.Time) string {
	began, what := s.started.Add(-granularity), "restarted"
	// A server that was met as a new one soon after it started, and was never a replica, is the
	// same server as before.
	if s.changed.After(s.started) && (s.promoted || s.changed.Sub(s.started) > s.guard.period) {
		began, what = s.changed, "another server took over"
	}
	return fmt.Sprintf("%s %v ago", what, max(now.Sub(began), 0).Round(100*time.Millisecond))
}

// NextEnd returns when the next quarantine ends; zero if there is none.
func (g *Guard) NextEnd() (next time.Time) {
	if !g.On() {
		return next
	}
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, servers := range g.nodes {
		for _, s := range servers {
			if until := s.quarantine(); s.known && now.Before(until) && (next.IsZero() || until.Before(next)) {
				next = until
			}
		}
	}
	return next
}

// quarantined is the reason why a vote does not count yet.
type quarantined struct {
	left time.Duration
	why  string
}

func (e quarantined) Error() string {
	return fmt.Sprintf("quarantined for %v: %s", max(e.left.Round(100*time.Millisecond), 100*time.Millisecond), e.why)
}
