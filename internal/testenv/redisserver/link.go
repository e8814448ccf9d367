package redisserver

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
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
	path    *faultlink.Path
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu       sync.Mutex
	listener *faultlink.Listener // nil while refusing
	delay    [2]time.Duration    // by direction
	cuts     int
	cutOnly  []string // the commands whose replies to cut; empty: any
}

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
	reserved, err := port.Reserve()
	if err != nil {
		return nil, err
	}
	l := &Link{port: reserved, network: "tcp", target: target, path: faultlink.NewPath()}
	if filepath.IsAbs(target) {
		l.network = "unix"
	}
	l.path.Shape(l.shape)
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.Accept(); err != nil {
		reserved.Release()
		return nil, err
	}
	return l, nil
}

// Addr returns the host and port that clients dial. It never changes.
func (l *Link) Addr() string { return l.port.Addr() }

// Stall holds back all bytes, in both directions, like a hung server or a cut cable.
// Connections and bytes are accepted, and nothing is passed on, not even the end of a
// connection.
func (l *Link) Stall() { l.path.Hold(true, true) }

// Resume passes on the bytes that Stall has held back.
func (l *Link) Resume() { l.path.Heal() }

// Delay makes every byte to the server arrive d later than it was sent. Bytes sent one after
// the other are under way together, and their order is kept, even if the delay is changed.
func (l *Link) Delay(d time.Duration) { l.setDelay(faultlink.ToServer, d) }

// DelayReplies is Delay for bytes from the server.
func (l *Link) DelayReplies(d time.Duration) { l.setDelay(faultlink.ToClient, d) }

func (l *Link) setDelay(direction faultlink.Direction, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay[direction] = d
}

func (l *Link) shape(direction faultlink.Direction) (delay time.Duration, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay[direction], false
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
	listener, err := faultlink.Listen(l.port.Addr())
	if err != nil {
		return fmt.Errorf("redisserver: link: %w", err)
	}
	l.listener = listener
	listener.Serve(func(client net.Conn) { l.work.Go(func() { l.connect(client) }) })
	return nil
}

// Break closes every connection on both sides. Bytes held back or delayed are lost.
func (l *Link) Break() { l.path.Break() }

// Close ends the Link and all its connections, like Refuse and Break, and returns when all its
// goroutines have ended. Further calls do nothing.
func (l *Link) Close() {
	l.cancel()
	l.Refuse()
	l.Break()
	l.work.Wait()
	l.port.Release()
}

// connect connects a client to the server until one of them ends the connection. If the server
// cannot be reached, it closes the client's connection.
func (l *Link) connect(client net.Conn) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(l.ctx, l.network, l.target)
	if err != nil {
		return
	}
	c := faultlink.New(faultlink.Options{Path: l.path, Client: client, Server: server, Ask: l.fate})
	if l.ctx.Err() != nil { // closed before Close could see this connection
		c.Cut()
	}
	<-c.Done()
}
