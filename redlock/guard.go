package redlock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
)

// guard knows which servers are behind the nodes, and whose votes count.
//
// A restarted server has broken its connections, and so has one that gave its address
// to another. A lane pins its connection, and INFO goes in front of the first batch on
// each, in the same pipeline; so no vote is counted of a server that has not said on
// that very connection who it is. A server that was demoted and promoted again can
// keep its connections: an identity is believed for a while (believed), and a replica
// refuses what it is asked meanwhile, after which the lane takes another connection.
//
// Why nobody gets in whom the old memory would have kept out: let a key have been
// granted, or extended, on a node at g, with a ttl of at most period, and the node
// have lost it. Its votes count again no earlier than period after a time that is later
// than g: when the server started, or when it took the other's place, both at the latest
// (server.meet, server.heed). By then the key would be over on the server that lost it.
// A vote counts by when its command was sent, and the server executed it no earlier. The
// time is measured by our clock, so the margin for drift is added.
//
// A master that does not know that it was deposed goes on granting after g. Only its
// own settings stop it, and period must then be longer than the longest ttl by as much
// as that takes: see Config.RestartGuard.
type guard struct {
	clock  clock.Clock
	period time.Duration // Config.RestartGuard; 0: only a server that is listed twice is kept out
	drift  clock.Drift
	log    *asynclog.Log

	listen func(node int, addr string) // has a node listened to anew, as another server is at an address of it

	met   atomic.Bool  // the first operation has waited for all nodes to be identified
	twins atomic.Int32 // servers that are another node's too

	mu     sync.Mutex
	nodes  [][]*server // those behind each node; more than one behind a Cluster
	behind []bool      // a server behind the node was known, even if it is forgotten
}

// believed is how long a live connection's server is taken for the one that it said it
// was, from when it was asked. A vote that is sent within that time is executed while its
// round waits for it, which is NodeTimeout; a renewal waits for longer, and a server that
// forgot the key does not grant it. So the guard does not notice a server that is
// demoted, loads another's data, is promoted and votes within believed and NodeTimeout,
// all on a connection that lives on. Redis can do that in 19 ms, with repl-diskless-sync
// no. It takes REPLICAOF by hand: Sentinel closes all connections when it changes a role.
// A question in front of each vote would find such a server, for two more commands a vote.
// docs/operations.md says how to change roles by hand instead.
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
	left    bool      // its connection broke, and no other was made yet
	started time.Time // at the latest
	changed time.Time // when it took another's place, at the latest; zero: never, as far as is known
	void    marker    // an identity record whose date is too early, from an earlier stay
	twin    *server   // the same one behind another node, which has the vote
	err     error     // why it is not known who it is now
	heard   time.Time // when its last answer was read
	gone    time.Time // when the lane found that it is not the Cluster's any more; zero: it is
}

func newGuard(cfg Config, nodes int, log *asynclog.Log) *guard {
	return &guard{
		clock: cfg.Clock, period: cfg.RestartGuard, drift: cfg.Drift,
		log: log, nodes: make([][]*server, nodes), behind: make([]bool, nodes),
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

// meet takes what a server has said of itself in answer to questions that were sent and
// whose answers were read at these times. only reports that it is behind no other node
// too; record is the identity record that is to be written, or "".
//
// The server answered between sent and read. A bound that must not be too early, as the
// times when a server started and took over, counts from read. A bound that must not be
// too late, as the time until when an identity is believed, counts from sent.
func (s *server) meet(now sighting, sent, read time.Time) (only bool, record string) {
	g := s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	before, known, heard, was := s.sighting, s.known, s.heard, s.quarantine()
	s.sighting, s.known, s.left, s.heard, s.err = now, true, false, read, nil

	replaced := known && now.follows(before.identity) || !known && g.mayFollow(s.node, &now)
	g.behind[s.node] = true
	if !known || before.run != now.run {
		s.started = time.Time{}
	}
	if started := read.Add(granularity - now.uptime); s.started.IsZero() || started.Before(s.started) {
		s.started = started
	}
	if replaced {
		s.changed = read
	}
	s.heed(before.mark, replaced, sent, heard)
	if until := s.quarantine(); g.on() && (!known || replaced || until.After(was)) && read.Before(until) {
		g.log.Warn("node quarantined", "node", s.name, "until", until, "because", s.why(read))
	}
	g.findTwin(s)
	return s.twin == nil, s.record(sent)
}

// replaced is for a lane that has met another server than before, or the same one after it
// was a replica.
func (s *server) replaced() {
	if s.guard.listen != nil {
		s.guard.listen(s.node, s.addr)
	}
}

// mayFollow reports whether a server that is met for the first time may have taken another
// one's place since the longest ttl. It may if it was once a replica, or if the identity
// record names another server, unless the record has the date of the takeover. Behind a
// Cluster there is no record: there a former replica counts as new only beside a shard
// that is or was known, or every client would wait for a guard when it starts.
func (g *guard) mayFollow(node int, now *sighting) bool {
	if now.now.IsZero() {
		return now.promoted && g.behind[node]
	}
	_, dated := now.dated()
	return !dated && (now.promoted || now.stranger())
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
	began := s.started
	if s.changed.After(began) {
		began = s.changed
	}
	return began.Add(s.guard.span())
}

// span is how long a quarantine lasts.
func (g *guard) span() time.Duration { return clock.Sum(g.period, g.drift.Of(g.period)) }

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
