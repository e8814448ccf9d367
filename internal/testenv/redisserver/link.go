package redisserver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// Link is a proxy in front of one server. Clients dial Addr instead, and the Link can hold
// back, delay and lose their traffic. It passes bytes on in order, and does not interpret them
// except for CutReplies. Its methods are safe for concurrent use. They also affect existing
// connections, for bytes not yet passed on.
//
// A Cluster or Sentinel client learns the servers' own addresses and bypasses a Link, unless
// its Dialer is changed.
type Link struct {
	port    *port.Reservation
	network string
	target  string
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	conns    map[*linkConn]bool
	gate     chan struct{} // closed while bytes may pass
	delay    [2]time.Duration
	cuts     int
	cutOnly  []string // the commands whose replies to cut; empty: any
}

// Directions of a connection's bytes.
const (
	up   = iota // from the client to the server
	down        // from the server to the client
)

// NewLink puts a Link in front of target, an address as of [Server.Addr], and closes it when
// the test ends.
func NewLink(tb TB, target string) *Link {
	tb.Helper()
	l, err := OpenLink(target)
	if err != nil {
		tb.Fatalf("%v", err)
		return nil
	}
	tb.Cleanup(l.Close)
	return l
}

// OpenLink is NewLink without a test: the caller must close the Link.
func OpenLink(target string) (*Link, error) {
	l := &Link{
		network: "tcp",
		target:  target,
		conns:   make(map[*linkConn]bool),
		gate:    make(chan struct{}),
	}
	if filepath.IsAbs(target) {
		l.network = "unix"
	}
	close(l.gate)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for try := 1; ; try++ {
		reserved, err := port.Reserve()
		if err != nil {
			return nil, err
		}
		l.port = reserved
		if err = l.Accept(); err == nil {
			return l, nil
		}
		reserved.Release()
		if try == portTries {
			return nil, err
		}
	}
}

// Addr returns the host and port that clients dial. It never changes.
func (l *Link) Addr() string { return l.port.Addr() }

// Stall holds back all bytes, in both directions, like a hung server or a cut cable.
// Connections and bytes are accepted, and nothing is passed on, not even the end of a
// connection.
func (l *Link) Stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gate:
		l.gate = make(chan struct{})
	default: // stalled already
	}
}

// Resume passes on the bytes that Stall has held back.
func (l *Link) Resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gate:
	default:
		close(l.gate)
	}
}

// Delay makes every byte to the server arrive d later than it was sent. Bytes sent one after
// the other are under way together, and their order is kept, even if the delay is changed.
func (l *Link) Delay(d time.Duration) { l.setDelay(up, d) }

// DelayReplies is Delay for bytes from the server.
func (l *Link) DelayReplies(d time.Duration) { l.setDelay(down, d) }

func (l *Link) setDelay(direction int, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay[direction] = d
}

// Refuse refuses new connections, as if no process listened. Existing connections continue.
func (l *Link) Refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
}

// Accept ends Refuse. After an error the Link still refuses connections.
func (l *Link) Accept() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		return nil
	}
	if err := l.ctx.Err(); err != nil {
		return fmt.Errorf("redisserver: link is closed: %w", err)
	}
	listener, err := net.Listen("tcp", l.port.Addr())
	if err != nil {
		return fmt.Errorf("redisserver: link: %w", err)
	}
	l.listener = listener
	l.work.Go(func() { l.serve(listener) })
	return nil
}

// Break closes every connection on both sides. Bytes held back or delayed are lost.
func (l *Link) Break() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.close()
	}
}

// Close ends the Link and all its connections, like Refuse and Break, and returns when all its
// goroutines have ended. Further calls do nothing.
func (l *Link) Close() {
	l.cancel()
	l.Refuse()
	l.Break()
	l.work.Wait()
	l.port.Release()
}

func (l *Link) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed by Refuse
		}
		l.work.Go(func() { l.connect(client) })
	}
}

// connect connects a client to the server. If the server cannot be reached, it closes the
// client's connection.
func (l *Link) connect(client net.Conn) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(l.ctx, l.network, l.target)
	if err != nil {
		return
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	c := &linkConn{link: l, ctx: ctx, cancel: cancel, client: client, server: server}
	l.mu.Lock()
	l.conns[c] = true
	l.mu.Unlock()
	if l.ctx.Err() != nil { // closed before Close could see this connection
		return
	}
	defer func() {
		l.mu.Lock()
		delete(l.conns, c)
		l.mu.Unlock()
	}()
	c.run()
}

// passage waits until bytes may pass or the connection ends.
func (l *Link) passage(ctx context.Context) error {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	select {
	case <-gate:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
