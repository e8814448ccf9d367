package redlocktest

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/port"
)

// A port that was free when a master was killed can be somebody's source port
// when it comes back. Such connections are short.
const (
	listenAttempts = 50
	listenPause    = 20 * time.Millisecond
)

// reserve takes a loopback port for the master's whole life. Were it free while
// the master is dead, a master of another test process could get it, and would
// answer in its place.
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
		// A stranger has the TCP port of that number; the search goes on from
		// another place.
	}
}

// listen listens on addr.
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
			// The process is out of file descriptors, or the client hung up
			// before it was let in. Neither is the end of a server.
			<-time.After(time.Millisecond)
		}
	}
}

// serveSocket connects a client's socket to the master, with a goroutine for
// each direction, or closes it if the master is down.
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
		defer client.Close() // which also ends the other goroutine
		for {
			p, err := l.replies.receive(nil)
			if err != nil {
				return
			}
			// A client that has gone does not mind.
			_, _ = client.Write(p.raw)
		}
	}()
}
