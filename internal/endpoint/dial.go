package endpoint

import (
	"context"
	"errors"
	"net"
	"time"
)

// Dialer is go-redis' type of one.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Quietly makes a dialer of which go-redis does not know that it fails. On a
// failed dial go-redis writes to stderr, through a logger that is one for the
// whole process, and with time answers from a memory of failed dials. A
// connection that breaks at its first byte brings the same error to the same
// command, and none of that.
func Quietly(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		// A failed TLS handshake has sent no command either.
		if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "dial" {
			err = &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return brokenConn{notDialled{Plain(err)}}, nil
	}
}

// Failed is why a quiet dial has made no connection; nil of one that was made.
func Failed(conn net.Conn) error {
	if broken, ok := conn.(brokenConn); ok {
		return broken.err
	}
	return nil
}

// notDialled is one layer around a dial's error, for go-redis to take off.
type notDialled struct{ error }

func (e notDialled) Unwrap() error { return e.error }

// brokenConn is a connection that could not be made.
type brokenConn struct{ err error }

func (c brokenConn) Read([]byte) (int, error)         { return 0, c.err }
func (c brokenConn) Write([]byte) (int, error)        { return 0, c.err }
func (c brokenConn) Close() error                     { return nil }
func (c brokenConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c brokenConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c brokenConn) SetDeadline(time.Time) error      { return nil }
func (c brokenConn) SetReadDeadline(time.Time) error  { return nil }
func (c brokenConn) SetWriteDeadline(time.Time) error { return nil }
