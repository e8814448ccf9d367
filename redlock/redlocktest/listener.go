package redlocktest

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/port"
)

// When a master restarts, its port may be the source port of another connection. Such
// connections are short, so listen tries again.
const (
	listenAttempts = 50
	listenPause    = 20 * time.Millisecond
)

// reserve takes a loopback port for the master's whole life. Otherwise a master of another
// test process could get the port of a dead master, and answer in its place.
func reserve() (*port.Reservation, error) {
	for {
		r, err := port.Reserve()
		if err != nil {
			return nil, err
		}
		probe, err := net.Listen("tcp", r.Addr())
		if err == nil {
			probe.Close()
			return r, nil
		}
		r.Release()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		// Another program has the TCP port of that number: try another number.
	}
}

// listen listens on addr. If the port is taken, it retries for about a second.
func listen(addr string) (net.Listener, error) {
	for attempt := 1; ; attempt++ {
		l, err := net.Listen("tcp", addr)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || attempt == listenAttempts {
			return l, err
		}
		<-time.After(listenPause)
	}
}

// listener is the open port of a master that is up.
type listener struct {
	net.Listener
	done chan struct{} // closed when accept has returned
}

// accept serves connections until the listener is closed.
func (ln *listener) accept(m *Master) {
	defer close(ln.done)
	for {
		client, err := ln.Accept()
		switch {
		case err == nil:
			serveSocket(m, client)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// The process is out of file descriptors, or the client hung up before it was
			// accepted. A server survives both.
			<-time.After(time.Millisecond)
		}
	}
}

// serveSocket connects a client's socket to the master, with a goroutine for each direction,
// or closes it if the master is down.
func serveSocket(m *Master, client net.Conn) {
	l := newLink(m, nil, 2, func() { client.Close() })
	if !m.admit(l) {
		client.Close()
		return
	}
	go func() {
		defer l.release()
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if !l.feed(buf[:n]) {
				return
			}
			if err != nil {
				l.hangUp()
				return
			}
		}
	}()
	go func() {
		defer l.release()
		defer client.Close() // this also ends the other goroutine
		for {
			p, err := l.replies.receive(nil)
			if err != nil {
				return
			}
			// A client that has gone does not need the reply.
			_, _ = client.Write(p.raw)
		}
	}()
}
