package redlock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// guard knows which servers are behind the nodes, and whose votes count.
//
// A restarted server has broken its connections, and so has one that gave its address
// to another. A lane pins its connection, and INFO goes in front of the first batch on
// each, in the same pipeline; so no vote is counted of a server that has not said on
// that very connection who it is. A server that was demoted and promoted again can
// keep its connections: an identity is believed for believed, and a replica refuses
// what it is asked meanwhile, after which the lane takes another connection.
//
// Why nobody gets in whom the old memory would have kept out: let a key have been
// granted, or extended, on a node at g, with a ttl of at most period, and the node
// have lost it. Its votes count again no earlier than period after the server started,
// or after it was first met in the other's place, and both are after g. By then the
// key would be over on the server that lost it. The time is measured by our clock, so
// the margin for drift is added.
type guard struct {
	clock   clock.Clock
	period  time.Duration // Config.RestartGuard; 0: only a server that is listed twice is kept out
	margin  time.Duration
	journal *journal

	met   atomic.Bool  // the first operation has waited for all nodes to be identified
	twins atomic.Int32 // servers that are another node's too

	mu    sync.Mutex
	nodes [][]*server // those behind each node; more than one behind a Cluster
}

// believed is how long a live connection's server is taken for the one that it said it
// is. A server that is demoted and promoted again loses what it had by loading the
// other's data, which takes longer: Redis 7 waits 5 s before it begins
// (repl-diskless-sync-delay).
const believed = time.Second

// granularity is how much uptime_in_seconds may be too high: it is the difference of two
// times in whole seconds.
const granularity = time.Second

// server is whoever answers at one address of a node. Its fields are guarded by its
// guard's mu.
type server struct {
	guard *guard
	node  int
	name  string // the node's, for messages
	addr  string

	sighting
	known   bool
	started time.Time // at the latest
	changed time.Time // when it was first met as this one in another's place; zero: never
	twin    *server   // the same one behind another node, which has the vote
	err     error     // why it is not known who it is now
	heard   time.Time // when it last said so
}

func newGuard(cfg Config, nodes int, j *journal) *guard {
	return &guard{
		clock: cfg.Clock, period: cfg.RestartGuard, margin: cfg.Drift.Of(cfg.RestartGuard),
		journal: j, nodes: make([][]*server, nodes),
	}
}

// at returns the server at an address of a node.
func (g *guard) at(node int, name, addr string) *server {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.nodes[node] {
		if s.addr == addr {
			return s
		}
	}
	s := &server{guard: g, node: node, name: name, addr: addr}
	g.nodes[node] = append(g.nodes[node], s)
	return s
}

// on reports whether anybody is kept out for having forgotten.
func (g *guard) on() bool { return g.period > 0 }

// meet takes what a server has said of itself. only tells that it is behind no other
// node too, replaced that it has taken another server's place.
func (s *server) meet(now sighting, heard time.Time) (only, replaced bool) {
	g := s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	s.heard, s.err = heard, nil
	before, known := s.identity, s.known
	// Who was never a replica is there since it started. Who was can be somebody new to
	// us by the node's marker, or as a shard behind a Cluster that we know another of.
	replaced = known && now.follows(before) ||
		!known && now.promoted && (now.stranger() || g.metBehind(s.node))
	if !known || before.run != now.run {
		s.started = time.Time{}
	}
	s.sighting, s.known = now, true
	if started := heard.Add(granularity - now.uptime); s.started.IsZero() || started.Before(s.started) {
		s.started = started
	}
	if since, ok := now.dated(); ok && (replaced || !known && now.promoted) {
		s.changed = heard.Add(-since)
	} else if replaced {
		s.changed = heard
	}
	if until := s.quarantine(); g.on() && (!known || replaced) && heard.Before(until) {
		g.journal.warn("node quarantined", "node", s.name, "until", until, "because", s.why(heard))
	}
	g.findTwin(s)
	return s.twin == nil, replaced
}

// metBehind reports whether a server behind the node is known; mu is held.
func (g *guard) metBehind(node int) bool {
	for _, s := range g.nodes[node] {
		if s.known {
			return true
		}
	}
	return false
}

// doubt takes note of why a server could not be asked who it is. Without the guard that
// is its right.
func (s *server) doubt(err error) {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.err = err
}

// standing is why the votes of what is sent at a time do not count; nil if they do.
func (s *server) standing(sent time.Time) error {
	g := s.guard
	if !g.on() && g.twins.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.stands(sent)
}

// counts reports whether the votes of a node count now, as far as is known. Of a Cluster
// it is not known which of its servers has the key.
func (g *guard) counts(node int) bool {
	if !g.on() {
		return true
	}
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	servers := g.nodes[node]
	return len(servers) != 1 || servers[0].stands(now) == nil
}

// stands is standing with mu held.
func (s *server) stands(sent time.Time) error {
	g := s.guard
	switch {
	case s.twin != nil:
		return twinError{s.twin.name}
	case !g.on():
		return nil
	case s.err != nil:
		return s.err
	case !s.known:
		return errNoIdentity
	case s.role != "master":
		return errReplica
	}
	if until := s.quarantine(); sent.Before(until) {
		return quarantined{until.Sub(sent), s.why(sent)}
	}
	return nil
}

// quarantine is until when votes do not count; mu is held.
func (s *server) quarantine() time.Time {
	g := s.guard
	until := s.started.Add(g.period + g.margin)
	if changed := s.changed.Add(g.period + g.margin); !s.changed.IsZero() && changed.After(until) {
		return changed
	}
	return until
}

// why is what a quarantine is for; mu is held.
func (s *server) why(now time.Time) string {
	began, what := s.started.Add(-granularity), "restarted"
	// Who changed when it had just been started, and was never a replica, is the same
	// server again.
	if s.changed.After(s.started) && (s.promoted || s.changed.Sub(s.started) > s.guard.period) {
		began, what = s.changed, "another server took over"
	}
	return fmt.Sprintf("%s %v ago", what, max(now.Sub(began), 0).Round(100*time.Millisecond))
}

// ends is when the next quarantine does; zero if there is none.
func (g *guard) ends() (next time.Time) {
	if !g.on() {
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

var errReplica = errors.New("is a replica")

// quarantined is a vote that does not count yet.
type quarantined struct {
	left time.Duration
	why  string
}

func (e quarantined) Error() string {
	return fmt.Sprintf("quarantined for %v: %s", max(e.left.Round(100*time.Millisecond), 100*time.Millisecond), e.why)
}

// forbidden is a server's refusal to say who it is.
type forbidden struct {
	command string
	cause   error
}

func (e forbidden) Error() string {
	return fmt.Sprintf("does not permit %s, which Config.RestartGuard needs (ACL: +%s): %v",
		strings.ToUpper(e.command), e.command, e.cause)
}
func (e forbidden) Unwrap() error { return e.cause }
