package sim

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// path is the network between one client and one node: a base latency with jitter, and what
// the faults add to it.
type path struct {
	*inmemory.Path
	base time.Duration

	seed    uint64
	numbers []int      // of the client and the node
	sending sync.Mutex // held while a connection sends, which never blocks

	mu     sync.Mutex
	random [2]*rand.Rand // by direction: the scheduler decides which one draws first
	dials  int           // connections so far
	sender *rand.Rand    // the source of the connection that is sending; nil: none is
	// The sums of what the faults that hit the path do to it now.
	slow      int           // faults that give latencies a long tail
	far       time.Duration // everything takes that much longer
	late      time.Duration // requests take at least that much longer
	lateInfo  time.Duration // what lateReply becomes when a client next asks for the server's identity
	lateReply time.Duration // replies take that much longer
	loseAsk   int
	loseReply int
	torn      [2]int // by direction: faults that tear batches
	refused   int
	held      [2]int // by direction: partitions, and pauses of the client

	stands  bool    // the client stands still, so that a direction is held
	cut     [2]bool // by direction: held by an action of a scenario
	loseAll bool    // an action of a scenario loses each reply

	show    *show // nil: nobody watches
	traffic traffic
}

func newPath(seed uint64, client, node int, m *inmemory.Master) *path {
	p := &path{Path: m.Path(), seed: seed, numbers: []int{client, node}}
	for d := range p.random {
		p.random[d] = stream(seed, "path", client, node, d)
	}
	p.base = between(p.random[0], 50*time.Microsecond, 2*time.Millisecond)
	p.Shape(p.shape)
	p.Tear(p.tear)
	return p
}

// source returns the random source for messages in a direction. mu is held.
func (p *path) source(d faultlink.Direction) *rand.Rand {
	if d == faultlink.ToServer && p.sender != nil {
		return p.sender
	}
	return p.random[d]
}

// sender is a connection. A client has one for its requests and one that listens. The
// scheduler decides which of them sends first at an instant, so each has a random source of
// its own.
type sender struct {
	net.Conn
	path   *path
	random *rand.Rand
}

// connect wraps dial so that each connection it makes is a sender.
func (p *path) connect(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.dials++
		number := p.dials
		p.mu.Unlock()
		return &sender{conn, p, stream(p.seed, "connection", append(p.numbers, number)...)}, nil
	}
}

func (s *sender) Write(b []byte) (int, error) {
	s.path.sending.Lock()
	defer s.path.sending.Unlock()
	s.path.sends(s.random, b)
	s.path.asks(b)
	defer s.path.sends(nil, nil)
	return s.Conn.Write(b)
}

// SyscallConn lets go-redis check a pooled connection before it uses it, as it checks a
// socket: it silently replaces one that was cut.
func (s *sender) SyscallConn() (syscall.RawConn, error) {
	if s.Conn.(interface{ Ended() bool }).Ended() {
		return nil, io.EOF
	}
	return noSocket{}, nil
}

// noSocket stands for a socket that is open and has nothing to read.
type noSocket struct{}

func (noSocket) Control(func(uintptr)) error    { return nil }
func (noSocket) Read(func(uintptr) bool) error  { return nil }
func (noSocket) Write(func(uintptr) bool) error { return nil }

// asks delays replies by lateInfo from now on if b asks for the server's identity.
func (p *path) asks(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lateInfo > 0 && bytes.Contains(b, []byte("replication")) {
		p.lateReply = p.lateInfo
	}
}

// sends records what is being sent, and from which source its latency is drawn.
func (p *path) sends(r *rand.Rand, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sender, p.traffic.writes = r, b
}

// Read shows what has arrived.
func (s *sender) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.path.received(b[:n])
	}
	return n, err
}

// Close shows that no more replies arrive.
func (s *sender) Close() error {
	s.path.gone(faultlink.ToClient)
	return s.Conn.Close()
}

// lossOf is the share of requests or replies that a losing path loses.
const lossOf = 0.3

func (p *path) shape(d faultlink.Direction) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delay, lost := p.draw(d)
	p.shows(d, delay, lost)
	return delay, lost
}

// draw decides how long a message takes, and whether it is lost. mu is held.
func (p *path) draw(d faultlink.Direction) (delay time.Duration, lost bool) {
	r := p.source(d)
	delay = p.far + p.base/2 + between(r, 1, p.base)
	if p.slow > 0 {
		delay += time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
	}
	if p.late > 0 && d == faultlink.ToServer {
		delay += p.late + between(r, 1, p.late)
	}
	if d == faultlink.ToClient {
		delay += p.lateReply
	}
	loses := p.loseAsk
	if d == faultlink.ToClient {
		loses = p.loseReply
	}
	lost = loses > 0 && r.Float64() < lossOf
	return delay, lost || p.losesAnswer(d)
}

// tornOf is the share of requests, and of replies, that a tearing path tears. A batch has
// as many replies as commands, and the first torn one ends it, so the share of replies is
// smaller.
var tornOf = [2]float64{faultlink.ToServer: 0.3, faultlink.ToClient: 0.1}

func (p *path) tear(d faultlink.Direction, bytes int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.source(d); p.torn[d] > 0 && r.Float64() < tornOf[d] {
		return r.IntN(bytes)
	}
	return bytes
}

// set changes the path, and holds, heals or refuses as the change demands.
func (p *path) set(f func(p *path)) {
	p.mu.Lock()
	f(p)
	ask, reply, refused := p.held[faultlink.ToServer] > 0, p.held[faultlink.ToClient] > 0, p.refused > 0
	p.show.link(p)
	p.mu.Unlock()
	p.Hold(ask, reply)
	p.Refuse(refused)
}
