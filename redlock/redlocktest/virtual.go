package redlocktest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// virtualAddr returns the i-th virtual master's address: 10.0.0.1:6379 and up. It is an IP
// literal because go-redis resolves names, and the resolver is outside the bubble.
func virtualAddr(i int) string {
	n := i + 1
	ip := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
	return netip.AddrPortFrom(ip, 6379).String()
}

func (m *Master) remote() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(m.addr)) }

// dialInProcess connects to the master over path p; nil is no path. If the master is down, it
// fails like a connection to a closed port.
func (m *Master) dialInProcess(ctx context.Context, p *Path) (net.Conn, error) {
	err := ctx.Err()
	if err == nil {
		l := newLink(m, p, 0, func() {})
		if m.admit(l) {
			return &virtualConn{link: l, remote: m.remote(), read: newDeadline(), write: newDeadline()}, nil
		}
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: m.remote(), Err: err}
}

// virtualConn is a client's in-process connection to a master. It behaves like a TCP
// connection: it has the master's address, its writes succeed until the client closes it, and
// only a read reports that the master did. It needs no goroutine, which keeps bubbles with
// many connections small.
type virtualConn struct {
	link        *link
	remote      net.Addr
	read, write *deadline
	once        sync.Once
	closed      atomic.Bool
	rest        []byte // unread bytes of the last replies received
}

func (c *virtualConn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 || c.closed.Load() {
		next, err := c.link.replies.receive(c.read.expired())
		switch {
		case c.closed.Load():
			return 0, c.fail("read", net.ErrClosed)
		case errors.Is(err, io.EOF):
			return 0, io.EOF
		case err != nil:
			return 0, c.fail("read", err)
		}
		c.rest = next.raw
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *virtualConn) Write(p []byte) (int, error) {
	if c.closed.Load() {
		return 0, c.fail("write", net.ErrClosed)
	}
	select {
	case <-c.write.expired():
		return 0, c.fail("write", os.ErrDeadlineExceeded)
	default:
	}
	c.link.feed(p)
	return len(p), nil
}

func (c *virtualConn) Close() error {
	err := c.fail("close", net.ErrClosed)
	c.once.Do(func() {
		c.closed.Store(true)
		c.link.hangUp()
		c.link.replies.close() // ends a read
		c.read.set(time.Time{})
		c.write.set(time.Time{})
		err = nil
	})
	return err
}

// Ended reports whether the client's next read would return the end of the connection.
// go-redis checks pooled connections in advance only if they have SyscallConn, like sockets. A
// dialer can use Ended to add a SyscallConn that fails then.
func (c *virtualConn) Ended() bool { return c.closed.Load() || c.link.replies.hasEnded() }

func (c *virtualConn) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(10, 255, 255, 254)} }
func (c *virtualConn) RemoteAddr() net.Addr { return c.remote }

func (c *virtualConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *virtualConn) SetReadDeadline(t time.Time) error  { return c.setDeadline(c.read, t) }
func (c *virtualConn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.write, t) }

func (c *virtualConn) setDeadline(d *deadline, t time.Time) error {
	if c.closed.Load() {
		return c.fail("set", net.ErrClosed)
	}
	d.set(t)
	return nil
}

func (c *virtualConn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: c.remote, Err: err}
}
