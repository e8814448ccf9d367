package redlocktest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// link is one connection between a client and a master. On the client's side is a socket or a
// virtualConn, which feeds requests in, receives replies and hangs up.
//
//	client ── feed ──▶ requests ──▶ serverEnd.Read ──▶ miniredis
//	client ◀─receive── replies ◀── serverEnd.Write ◀── miniredis
//
// The server gets one command at a time, so that a stall can take effect within a pipeline.
// The client's end reaches it only after the earlier requests, and it closes its end when it
// has executed the last of them. So the link knows that a request whose reply is to be lost
// has been executed.
type link struct {
	master   *Master
	path     *Path // the path; nil for none
	requests *flow
	replies  *flow
	mute     atomic.Bool // replies are lost
	number   int         // in the order of the master's links

	exchanges exchanges

	mu      sync.Mutex // never held while anything blocks
	pending []byte     // the beginning of a command
	request []command  // complete commands that are not sent yet
	over    bool       // nothing more is taken from the client

	abort   func()        // ends what the client's side is doing
	holders atomic.Int32  // the server and the goroutines of the client's side
	done    chan struct{} // closed when none of the holders is left
}

// newLink returns a link on path p. n goroutines work on the client's side; each releases the
// link when it ends.
func newLink(m *Master, p *Path, n int32, abort func()) *link {
	l := &link{
		master:   m,
		path:     p,
		requests: newFlow(p, ToMaster),
		replies:  newFlow(p, ToClient),
		abort:    abort,
		done:     make(chan struct{}),
	}
	l.holders.Store(n + 1)
	return l
}

// serve hands the link to the server, which starts its own goroutines.
func (l *link) serve(s *server.Server) { s.ServeConn(&serverEnd{link: l}) }

// sever cuts the connection at the master, with everything under way on it. The client notices
// as soon as its path lets it.
func (l *link) sever() {
	l.requests.close()
	l.replies.end()
	l.abort()
}

// cut severs the connection at the client too.
func (l *link) cut() {
	l.sever()
	l.replies.close()
}

func (l *link) release() {
	if l.holders.Add(-1) > 0 {
		return
	}
	l.master.mu.Lock()
	delete(l.master.links, l)
	l.master.mu.Unlock()
	if l.path != nil {
		l.path.remove(l)
	}
	close(l.done)
}

// feed takes bytes from the client. It returns false if it takes no more.
func (l *link) feed(p []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	commands, rest, bad := parseCommands(append(l.pending, p...))
	l.request, l.pending = append(l.request, commands...), rest
	if bad {
		l.finish() // bytes that are no command end their connection
	} else if len(l.pending) == 0 {
		// A client writes whole commands, so the rest of this one belongs to the same request.
		l.submit()
	}
	return !l.over
}

// hangUp ends the client's side: the client is gone.
func (l *link) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.finish()
	}
}

// submit sends a request on its way, unless it is to be lost.
func (l *link) submit() {
	request := l.request
	l.request = nil
	if len(request) == 0 {
		return
	}
	fate := l.master.draw(request)
	delay, lost := l.path.draw(ToMaster)
	if lost || fate == loseRequest {
		l.replies.close() // the receiver takes that for the end
		l.finish()
		return
	}
	if fate == loseReply {
		l.mute.Store(true)
	}
	request, torn := l.path.tear(request)
	due := l.master.requestDue(delay)
	packets := make([]packet, len(request))
	for i, c := range request {
		packets[i] = packet{command: c, due: due}
	}
	l.requests.send(packets...)
	if fate == loseReply || torn {
		l.finish()
	}
}

// finish sends the end of the client's side after all requests.
func (l *link) finish() {
	if l.over {
		return
	}
	l.submit()
	if l.over {
		return // the last request was to be lost, or torn
	}
	l.over = true
	l.pending = nil
	l.requests.send(packet{end: true, due: l.master.requestDue(0)})
}

// serverEnd is the server's end of a link. Its Write must not block: miniredis publishes
// messages with its one mutex held.
type serverEnd struct {
	*link
	rest  []byte // unread bytes of the current command
	once  sync.Once
	resp3 bool // whether the protocol is RESP3; the exchanges' mutex guards it
}

func (e *serverEnd) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		next, err := e.requests.receive(nil)
		if err != nil {
			return 0, io.EOF
		}
		s, ok := e.enter(next.args)
		if !ok {
			return 0, io.EOF
		}
		e.rest = e.master.standIn(s, next.raw)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// enter waits while the master is stalled and then records the command. It returns false if
// the link ends first.
func (e *serverEnd) enter(args []string) (sent, bool) {
	for {
		s, stalled := e.master.record(args)
		if stalled == nil {
			e.exchanges.asked(s)
			return s, true
		}
		select {
		case <-stalled:
		case <-e.requests.closed:
			return sent{}, false
		}
	}
}

func (e *serverEnd) Write(p []byte) (int, error) {
	observer := e.master.observing()
	out, complete := e.exchanges.answered(p, e.amend)
	for _, x := range complete {
		if observer != nil {
			x.Path = e.path
			observer(x)
		}
	}
	for _, o := range out {
		e.reply(o)
	}
	return len(p), nil
}

// reply sends a piece on its way to the client, unless it is to be lost.
func (e *serverEnd) reply(o piece) {
	if e.mute.Load() || o.message && e.master.losesMessage() {
		return
	}
	delay, lost := e.path.draw(ToClient)
	left := 0
	if !lost {
		left = e.path.arrives(ToClient, len(o.raw))
	}
	due := e.master.replyDue(delay)
	if o.message {
		due = e.master.messageDue(delay)
	}
	if left > 0 {
		e.replies.send(packet{command: command{raw: o.raw[:left:left]}, due: due})
	}
	if left < len(o.raw) {
		e.mute.Store(true)
		e.replies.send(packet{end: true, due: due})
		e.hangUp()
	}
}

// Close is called by the server when it has executed all commands that it read.
func (e *serverEnd) Close() error {
	e.once.Do(func() {
		e.requests.close()
		e.replies.send(packet{end: true, due: e.master.replyDue(0)})
		e.release()
	})
	return nil
}

// The server does not use these methods.

func (e *serverEnd) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (e *serverEnd) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (e *serverEnd) SetDeadline(time.Time) error      { return nil }
func (e *serverEnd) SetReadDeadline(time.Time) error  { return nil }
func (e *serverEnd) SetWriteDeadline(time.Time) error { return nil }
