package endpoint

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/quorumlock/redlock/internal/plain"
)

// Dialer is the type of a dialer in go-redis.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Quietly wraps dial so that go-redis does not notice when it fails. Instead of an error, the
// dialer then returns a connection that fails at its first byte with the dial's error, so
// that the same command gets the same error. If go-redis noticed, it would write to stderr,
// through a logger for the whole process, and after some failures answer from its memory
// of failed dials.
func Quietly(dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		// A failed TLS handshake counts as a failed dial, as no command was sent.
		if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "dial" {
			err = &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return brokenConn{notDialled{plain.Error(err)}}, nil
	}
}

// Failed returns the error of the dial that made conn, or nil if the dial succeeded. conn
// comes from a dialer of Quietly.
func Failed(conn net.Conn) error {
	if broken, ok := conn.(brokenConn); ok {
		return broken.err
	}
	return nil
}

// notDialled wraps a dial's error in one layer, which go-redis removes.
type notDialled struct{ error }

func (e notDialled) Unwrap() error { return e.error }

// brokenConn stands for a connection that could not be made. It fails with err.
type brokenConn struct{ err error }

func (c brokenConn) Read([]byte) (int, error)         { return 0, c.err }
func (c brokenConn) Write([]byte) (int, error)        { return 0, c.err }
func (c brokenConn) Close() error                     { return nil }
func (c brokenConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c brokenConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c brokenConn) SetDeadline(time.Time) error      { return nil }
func (c brokenConn) SetReadDeadline(time.Time) error  { return nil }
func (c brokenConn) SetWriteDeadline(time.Time) error { return nil }
