package faultlink

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is one connection between a client and a server.
//
//	client ──▶ requests ──▶ Receive ──▶ server
//	client ◀── replies  ◀── Reply   ◀── server
//
// The client is a socket or in-process ([Conn.Dialled]). The server is a socket, or calls
// Receive, Reply and Close itself.
//
// The client's end reaches the server only after the earlier requests. The server closes its
// end when it has executed the last of them. So a request whose reply is to be lost is executed
// before the connection ends.
type Conn struct {
	Options
	requests *flow
	replies  *flow
	mute     atomic.Bool // replies are lost

	mu      sync.Mutex // never held while anything blocks
	pending []byte     // what the client has sent of the current request
	whole   int        // how many of these bytes are whole messages
	over    bool       // nothing more is taken from the client

	sets    []*Set
	holders atomic.Int32  // the server and the goroutines of the sockets
	closing sync.Once     // by the server
	done    chan struct{} // closed when none of the holders is left
}

// Options are what a connection's owner decides. Only Path is required.
type Options struct {
	Path  *Path
	Owner any // for the owner's use

	Client net.Conn // the client's socket; nil if it is in-process
	Server net.Conn // the server's socket; nil if it is in-process

	// Whole returns how many bytes at the start of b are whole messages, and whether the rest
	// cannot become one, which ends the connection. A request ends where all bytes so far are whole
	// messages. If Whole is nil, each piece that arrives is a request.
	Whole func(b []byte) (n int, bad bool)

	// Ask decides the fate of each request. If Ask is nil, all pass.
	Ask func(request []byte) Fate

	// Delay returns how long something sent now takes, in addition to the path's delay.
	Delay func(Direction) time.Duration
}

// Fate is what happens to a request.
type Fate int

const (
	Pass        Fate = iota
	LoseRequest      // and cut the connection
	LoseReply        // let the server execute it, and cut the connection instead of replying
)

// New returns a connection. It belongs to its path and to these sets until it is over.
func New(o Options, sets ...*Set) *Conn {
	c := &Conn{
		Options:  o,
		requests: newFlow(o.Path, ToServer),
		replies:  newFlow(o.Path, ToClient),
		sets:     append(sets, &o.Path.Conns),
		done:     make(chan struct{}),
	}
	c.holders.Store(1)
	for _, s := range c.sets {
		s.add(c)
	}
	if c.Client != nil {
		c.serveClient()
	}
	if c.Server != nil {
		c.serveServer()
	}
	return c
}

// Done returns a channel that is closed when the connection is over and none of its goroutines
// is left.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Sever cuts the connection at the server, with everything under way on it. An in-process
// client notices as soon as its path lets it.
func (c *Conn) Sever() {
	c.requests.close()
	c.replies.end()
	if c.Client != nil {
		_ = c.Client.Close()
	}
	if c.Server != nil {
		_ = c.Server.Close()
	}
}

// Cut severs the connection at the client too.
func (c *Conn) Cut() {
	c.Sever()
	c.replies.close()
}

// release removes one holder. The last one ends the connection.
func (c *Conn) release() {
	if c.holders.Add(-1) > 0 {
		return
	}
	for _, s := range c.sets {
		s.remove(c)
	}
	close(c.done)
}

// due returns when something sent now arrives. The zero time means at once.
func (c *Conn) due(d Direction, delay time.Duration) time.Time {
	if c.Delay != nil {
		delay += c.Delay(d)
	}
	if delay <= 0 {
		return time.Time{}
	}
	return time.Now().Add(delay)
}

// feed takes bytes from the client. It returns false if it takes no more.
func (c *Conn) feed(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.pending = append(c.pending, p...)
	n, bad := len(c.pending)-c.whole, false
	if c.Whole != nil {
		n, bad = c.Whole(c.pending[c.whole:])
	}
	c.whole += n
	if bad {
		c.finish()
	} else if c.whole == len(c.pending) {
		c.submit()
	}
	return !c.over
}

// hangUp ends the client's side: the client is gone.
func (c *Conn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish()
}

// submit sends the whole messages on their way, unless they are to be lost.
func (c *Conn) submit() {
	request := c.pending[:c.whole]
	c.pending, c.whole = nil, 0
	if len(request) == 0 {
		return
	}
	fate := Pass
	if c.Ask != nil {
		fate = c.Ask(request)
	}
	delay, lost := c.Path.Draw(ToServer)
	if lost || fate == LoseRequest {
		c.replies.close() // the receiver takes that for the end
		c.finish()
		return
	}
	if fate == LoseReply {
		c.mute.Store(true)
	}
	left := c.Path.arrives(ToServer, len(request))
	if left > 0 {
		c.requests.send(packet{data: request[:left], due: c.due(ToServer, delay)})
	}
	if fate == LoseReply || left < len(request) {
		c.finish()
	}
}

// finish sends the end of the client's side after all requests.
func (c *Conn) finish() {
	if c.over {
		return
	}
	c.submit()
	if c.over {
		return // the last request was to be lost, or torn
	}
	c.over = true
	c.requests.send(packet{end: true, due: c.due(ToServer, 0)})
}

// Receive returns the next bytes that reach the server, and io.EOF at the end.
func (c *Conn) Receive() ([]byte, error) { return c.requests.receive(nil) }

// Severed returns a channel that is closed when the server receives no more.
func (c *Conn) Severed() <-chan struct{} { return c.requests.closed }

// Mute reports whether replies are lost.
func (c *Conn) Mute() bool { return c.mute.Load() }

// Reply sends a reply to the client, unless it is lost, and keeps the slice. late is added to all
// other delays. It never blocks.
func (c *Conn) Reply(reply []byte, late time.Duration) {
	if c.Mute() {
		return
	}
	delay, lost := c.Path.Draw(ToClient)
	left := 0
	if !lost {
		left = c.Path.arrives(ToClient, len(reply))
	}
	due := c.due(ToClient, delay+late)
	if left > 0 {
		c.replies.send(packet{data: reply[:left:left], due: due})
	}
	if left < len(reply) {
		c.mute.Store(true)
		c.replies.send(packet{end: true, due: due})
		c.hangUp()
	}
}

// Close ends the server's side after all replies. Further calls do nothing.
func (c *Conn) Close() {
	c.closing.Do(func() {
		c.requests.close()
		c.replies.send(packet{end: true, due: c.due(ToClient, 0)})
		c.release()
	})
}
