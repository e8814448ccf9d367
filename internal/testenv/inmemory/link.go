package inmemory

import (
	"io"
	"net"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// serverEnd is the master's end of a connection. The server gets one command at a time, so that
// a stall can take effect within a pipeline. Write must not block: miniredis publishes messages
// with its one mutex held.
type serverEnd struct {
	conn   *faultlink.Conn
	master *Master
	path   *Path // nil for none

	received []byte // commands that the server has not begun to read
	rest     []byte // unread bytes of the current command
	resp3    bool   // whether the protocol is RESP3; the exchanges' mutex guards it

	exchanges exchanges
}

// connect connects a client on path p, nil for none, to the server. The client is in-process
// if socket is nil. connect returns false if the master is down.
func (m *Master) connect(p *Path, socket net.Conn) (*faultlink.Conn, bool) {
	e := &serverEnd{master: m, path: p}
	options := faultlink.Options{Path: m.direct, Owner: e, Client: socket, Whole: wholeCommands, Ask: m.fate, Delay: m.delay}
	if p != nil {
		options.Path = p.Path
	}
	m.mu.Lock()
	if !m.up {
		m.mu.Unlock()
		return nil, false
	}
	e.conn = faultlink.New(options, &m.conns)
	m.mu.Unlock()
	// The server starts its own goroutines. A connection that has been severed meanwhile ends
	// at once.
	m.server.ServeConn(e)
	return e.conn, true
}

// serve connects a client's socket to the master, or closes it if the master is down.
func (m *Master) serve(client net.Conn) {
	if _, ok := m.connect(nil, client); !ok {
		client.Close()
	}
}

func (e *serverEnd) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		var args []string
		n, _ := parseCommand(e.received, func(arg []byte) { args = append(args, string(arg)) })
		if n == 0 {
			more, err := e.conn.Receive()
			if err != nil {
				return 0, io.EOF
			}
			e.received = append(e.received, more...)
			continue
		}
		raw := e.received[:n:n]
		e.received = e.received[n:]
		if len(args) == 0 {
			continue // like Redis, ignore an empty array
		}
		s, ok := e.enter(args)
		if !ok {
			return 0, io.EOF
		}
		e.rest = e.master.standIn(s, raw)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// enter waits while the master is stalled and then records the command. It returns false if
// the connection ends first.
func (e *serverEnd) enter(args []string) (sent, bool) {
	for {
		select {
		case <-e.conn.Severed():
			return sent{}, false
		default:
		}
		s, stalled := e.master.record(args)
		if stalled == nil {
			e.exchanges.asked(s)
			return s, true
		}
		select {
		case <-stalled:
		case <-e.conn.Severed():
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
		switch {
		case !o.message:
			e.conn.Reply(o.raw, 0)
		case e.conn.Mute() || e.master.losesMessage():
		default:
			e.conn.Reply(o.raw, e.master.messageDelay())
		}
	}
	return len(p), nil
}

// Close is called by the server when it has executed all commands that it read.
func (e *serverEnd) Close() error {
	e.conn.Close()
	return nil
}

// The server does not use these methods.

func (e *serverEnd) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (e *serverEnd) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (e *serverEnd) SetDeadline(time.Time) error      { return nil }
func (e *serverEnd) SetReadDeadline(time.Time) error  { return nil }
func (e *serverEnd) SetWriteDeadline(time.Time) error { return nil }
