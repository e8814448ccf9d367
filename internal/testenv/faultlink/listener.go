package faultlink

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// When a server restarts, its port may be the source port of another connection. Such
// connections are short, so Listen tries again.
const (
	listenAttempts = 50
	listenPause    = 20 * time.Millisecond
)

// Listener is an open port.
type Listener struct {
	net.Listener
	serving sync.WaitGroup
}

// Listen listens on addr. If the port is taken, it retries for about a second.
func Listen(addr string) (*Listener, error) {
	for attempt := 1; ; attempt++ {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return &Listener{Listener: l}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || attempt == listenAttempts {
			return nil, err
		}
		<-time.After(listenPause)
	}
}

// Serve starts to call serve for each connection, one after the other.
func (l *Listener) Serve(serve func(net.Conn)) { l.serving.Go(func() { l.accept(serve) }) }

// Close closes the port. It returns when no call of serve is left.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	l.serving.Wait()
	return err
}

func (l *Listener) accept(serve func(net.Conn)) {
	for {
		client, err := l.Accept()
		switch {
		case err == nil:
			serve(client)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			// The process is out of file descriptors, or the client hung up before it was
			// accepted. A server survives both.
			<-time.After(time.Millisecond)
		}
	}
}
