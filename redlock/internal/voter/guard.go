// Package voter decides whose votes count. It knows which servers are behind the nodes, and
// keeps three kinds of servers out of the vote: those that may have forgotten locks
// (Config.RestartGuard), replicas, and a second node that is the same server.
//
// It does no I/O: the connections identify their servers and report what they learned.
package voter

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
)

// Guard holds what is known of the servers behind all nodes.
//
// A server that restarts breaks its connections, and so does a server whose address is given to
// another. A lane pins its connection, and INFO goes in front of the first batch on each, in
// the same pipeline. So the votes of a server count only if it has identified itself on that
// very connection. A server that is demoted and promoted again can keep its connections.
// Therefore an identity is believed for a limited time (Believed). In between, a replica
// refuses commands, after which the lane takes another connection.
//
// Why no second holder gets in: let a key have been granted, or extended, on a node at time g,
// with a ttl of at most period, and let the node have lost it. The node's votes count again no
// earlier than period after a time that is later than g: when the server started, or when it
// took the other's place. Both are upper bounds (Server.Met, Server.heed). By then the key would
// have expired on the server that lost it. A vote counts by the time when its command was sent,
// and the server executed it no earlier. The time is measured by this client's clock, so the
// margin for drift is added.
//
// A master that does not know that it was deposed goes on granting after g. Only its own
// settings stop it, and period must then exceed the longest ttl by as much as that takes: see
// Config.RestartGuard.
type Guard struct {
	clock      clock.Clock
	period     time.Duration // Config.RestartGuard; 0: only duplicates are kept out
	drift      clock.Drift
	log        *asynclog.Log
	onReplaced func(node int, addr string)

	onQuarantine func(Quarantine) // nil: nobody listens

	duplicates atomic.Int32 // number of servers that are duplicates

	mu    sync.Mutex
	nodes [][]*Server // the servers behind each node; more than one behind a Cluster
	known []bool      // by node: a server behind it was ever known, forgotten or not

	ends   map[*Server]clock.Timer // when the quarantines of servers end
	closed bool
}

// Believed is how long an identity is believed, from when the server was asked for it. A
// command that is sent within that time is executed while its round waits, which is for
// NodeTimeout. A renewal waits longer, but a server that forgot the key does not grant it. So
// the guard misses a server that is demoted, loads another's data, is promoted and votes, all
// on one connection and within Believed and NodeTimeout. Redis can do that in 19 ms, with
// repl-diskless-sync no. It takes REPLICAOF by hand: Sentinel closes all connections when it
// changes a role. A question in front of each vote would find such a server, for two more
// commands a vote. docs/operations.md describes how to change roles by hand instead.
const Believed = time.Second

// granularity is the most by which uptime_in_seconds can be too high, as it is the difference
// of two times in whole seconds.
const granularity = time.Second

// Server holds what is known of the server at one address of a node. The mu of its guard guards
// its fields.
type Server struct {
	guard *Guard
	node  int
	name  string // the node's name, for messages
	addr  string

	Info
	known        bool
	disconnected bool      // its connection broke, and no other was made yet
	started      time.Time // when it started, or later
	changed      time.Time // when it took another's place, or later; zero: never, so far
	void         record    // a record to ignore: its date is of an earlier stay, and too early
	duplicateOf  *Server   // the same server behind another node, which has the vote
	err          error     // why it did not identify itself when last asked; nil if it did
	heard        time.Time // when its last reply was read
	gone         time.Time // when it was found to be no longer a master of the Cluster; zero: it is
}

// NewGuard makes a Guard for this number of nodes. period is Config.RestartGuard. onReplaced is
// called from a lane, without locks, when the lane meets another server than before at an
// address, or the same one after it was a replica.
func NewGuard(clk clock.Clock, period time.Duration, drift clock.Drift, nodes int, log *asynclog.Log, onReplaced func(node int, addr string)) *Guard {
	return &Guard{
		clock: clk, period: period, drift: drift, log: log, onReplaced: onReplaced,
		nodes: make([][]*Server, nodes), known: make([]bool, nodes), ends: map[*Server]clock.Timer{},
	}
}

// Server returns the server at an address of a node, whose name is for messages.
func (g *Guard) Server(node int, name, addr string) *Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.nodes[node] {
		if s.addr == addr {
			return s
		}
	}
	s := &Server{guard: g, node: node, name: name, addr: addr}
	g.nodes[node] = append(g.nodes[node], s)
	return s
}

// On reports whether Config.RestartGuard is set.
func (g *Guard) On() bool { return g.period > 0 }

// Guard returns the Guard that s belongs to.
func (s *Server) Guard() *Guard { return s.guard }

// Node returns the number of the node that s is behind.
func (s *Server) Node() int { return s.node }

// Met records what a server reported about itself, in reply to questions that were sent at one
// time, and whose replies were read at another. only reports that the server is no duplicate of
// another node's. write is the identity record to write to the node, or "".
//
// The server answered between sent and read. A bound that must not be too early, such as when a
// server started or took over, counts from read. A bound that must not be too late, such as the
// time until when an identity is believed, counts from sent.
func (s *Server) Met(now Info, sent, read time.Time) (only bool, write string) {
	g := s.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	before, known, heard, was := s.Info, s.known, s.heard, s.quarantine()
	s.Info, s.known, s.disconnected, s.heard, s.err = now, true, false, read, nil

	replaced := known && now.Follows(before.Identity) || !known && g.mayFollow(s.node, &now)
	g.known[s.node] = true
	if !known || before.Run != now.Run {
		s.started = time.Time{}
	}
	if started := read.Add(granularity - now.uptime); s.started.IsZero() || started.Before(s.started) {
		s.started = started
	}
	if replaced {
		s.changed = read
	}
	s.heed(before.record, replaced, sent, heard)
	if until := s.quarantine(); g.On() && (!known || replaced || until.After(was)) && read.Before(until) {
		s.beginQuarantine(read, until)
	}
	g.findDuplicate(s)
	return s.duplicateOf == nil, s.wanted(sent)
}

// Replaced reports to the guard's owner that another server than before answers at the
// address.
func (s *Server) Replaced() { s.guard.onReplaced(s.node, s.addr) }

// mayFollow reports whether a server that is met for the first time may have replaced another
// one within the longest ttl. It may if it was once a replica, or if the identity record names
// another server, unless the record has the date of the takeover. Behind a Cluster there is no
// record. There a former replica counts as new only beside a shard that is or was known, or
// every client would wait for a quarantine when it starts.
func (g *Guard) mayFollow(node int, now *Info) bool {
	if now.now.IsZero() {
		return now.promoted && g.known[node]
	}
	_, dated := now.dated()
	return !dated && (now.promoted || now.others())
}

// Unidentified records why a server did not identify itself. It costs the server its votes
// only if the guard is on.
func (s *Server) Unidentified(err error) {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.err = err
}

// Eligibility returns the reason why the votes of commands that were sent at that time do not
// count; nil if they do.
func (s *Server) Eligibility(sent time.Time) error {
	g := s.guard
	if !g.On() && g.duplicates.Load() == 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.eligibility(sent)
}

// Counts reports whether the votes of a node count now, as far as is known. It reports true if no
// server behind the node is known, or several, as with a Cluster: it does not know which of them
// has the key.
func (g *Guard) Counts(node int) bool {
	if !g.On() {
		return true
	}
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	servers := g.nodes[node]
	return len(servers) != 1 || servers[0].eligibility(now) == nil
}

// eligibility is Eligibility for a caller that holds mu.
func (s *Server) eligibility(sent time.Time) error {
	g := s.guard
	switch {
	case s.duplicateOf != nil:
		return duplicateError{s.duplicateOf.name}
	case !g.On():
		return nil
	case s.err != nil:
		return s.err
	case !s.known:
		return ErrNoIdentity
	case s.role != "master":
		return errReplica
	}
	if until := s.quarantine(); sent.Before(until) {
		return quarantined{until.Sub(sent), s.why(sent)}
	}
	return nil
}

// Status is a server as Redlock.Nodes reports it; see redlock.ServerStatus.
type Status struct {
	Addr       string
	RunID      string
	Role       string
	Started    time.Time
	Heard      time.Time
	Quarantine time.Time
	Err        error
}

// Status returns what is known of the servers behind a node.
func (g *Guard) Status(node int, now time.Time) (all []Status) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.nodes[node] {
		if !s.known && s.err == nil {
			continue
		}
		status := Status{Addr: s.addr, RunID: s.Run, Role: s.role, Heard: s.heard, Err: s.eligibility(now)}
		if s.known {
			status.Started = s.started.Add(-granularity)
			if g.On() {
				status.Quarantine = s.quarantine()
			}
		}
		all = append(all, status)
	}
	return all
}

var errReplica = errors.New("is a replica")
