package redlock

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// watchDials calls f after each dial of the client with its error, or nil, until
// stop is called. A client gets one hook of ours for its lifetime, however often
// it is watched: go-redis can add hooks but not remove them.
func watchDials(client *redis.Client, f func(error)) (stop func()) {
	id := weak.Make(client)
	known, loaded := dialWatches.LoadOrStore(id, &dialWatch{})
	w := known.(*dialWatch)
	if !loaded {
		client.AddHook(w)
		runtime.AddCleanup(client, func(id weak.Pointer[redis.Client]) { dialWatches.Delete(id) }, id)
	}
	return w.add(f)
}

// dialWatches holds the hooks by client, without keeping a client alive.
var dialWatches sync.Map // weak.Pointer[redis.Client] → *dialWatch

// dialWatch is a go-redis hook that only listens to dials.
type dialWatch struct {
	mu    sync.Mutex
	next  int
	tells map[int]func(error)
}

func (w *dialWatch) add(f func(error)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tells == nil {
		w.tells = map[int]func(error){}
	}
	id := w.next
	w.next++
	w.tells[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.tells, id)
	}
}

// DialHook tells everybody who watches how the dial went.
func (w *dialWatch) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		went := err
		if broken, ok := conn.(brokenConn); ok {
			went = broken.err
		}
		w.mu.Lock()
		tells := make([]func(error), 0, len(w.tells))
		for _, f := range w.tells {
			tells = append(tells, f)
		}
		w.mu.Unlock()
		for _, f := range tells {
			f(went)
		}
		return conn, err
	}
}

// ProcessHook stays out of the way of commands.
func (w *dialWatch) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook stays out of the way of pipelines.
func (w *dialWatch) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// quietly makes a dialer of which go-redis does not know that it fails. On a
// failed dial go-redis writes to stderr, through a logger that is one for the
// whole process, and with time answers from a memory of failed dials. A
// connection that breaks at its first byte brings the same error to the same
// command, and none of that.
func quietly(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err == nil {
			return conn, nil
		}
		// A failed TLS handshake has sent no command either.
		if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "dial" {
			err = &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return brokenConn{notDialled{err}}, nil
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

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
