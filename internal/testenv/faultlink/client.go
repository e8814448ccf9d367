package faultlink

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Client is the in-process client's end of a connection. It behaves like a TCP connection: its
// writes succeed until the client closes it, and only a read reports that the server did. It
// needs no goroutine, which keeps synctest bubbles with many connections small.
type Client struct {
	conn        *Conn
	remote      net.Addr
	read, write *deadline
	once        sync.Once
	closed      atomic.Bool
	rest        []byte // unread bytes of the last replies received
}

// Dialled returns the end of an in-process client that has dialled the address remote.
func (c *Conn) Dialled(remote net.Addr) *Client {
	return &Client{conn: c, remote: remote, read: newDeadline(), write: newDeadline()}
}

func (c *Client) Read(p []byte) (int, error) {
	if len(c.rest) == 0 || c.closed.Load() {
		next, err := c.conn.replies.receive(c.read.expired())
		switch {
		case c.closed.Load():
			return 0, c.fail("read", net.ErrClosed)
		case errors.Is(err, io.EOF):
			return 0, io.EOF
		case err != nil:
			return 0, c.fail("read", err)
		}
		c.rest = next
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *Client) Write(p []byte) (int, error) {
	if c.closed.Load() {
		return 0, c.fail("write", net.ErrClosed)
	}
	select {
	case <-c.write.expired():
		return 0, c.fail("write", os.ErrDeadlineExceeded)
	default:
	}
	c.conn.feed(p)
	return len(p), nil
}

func (c *Client) Close() error {
	err := c.fail("close", net.ErrClosed)
	c.once.Do(func() {
		c.closed.Store(true)
		c.conn.hangUp()
		c.conn.replies.close() // ends a read
		c.read.set(time.Time{})
		c.write.set(time.Time{})
		err = nil
	})
	return err
}

// Ended reports whether the client's next read would return the end of the connection.
// go-redis checks pooled connections in advance only if they have SyscallConn, like sockets. A
// dialer can use Ended to add a SyscallConn that fails then.
func (c *Client) Ended() bool { return c.closed.Load() || c.conn.replies.hasEnded() }

func (c *Client) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(10, 255, 255, 254)} }
func (c *Client) RemoteAddr() net.Addr { return c.remote }

func (c *Client) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *Client) SetReadDeadline(t time.Time) error  { return c.setDeadline(c.read, t) }
func (c *Client) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.write, t) }

func (c *Client) setDeadline(d *deadline, t time.Time) error {
	if c.closed.Load() {
		return c.fail("set", net.ErrClosed)
	}
	d.set(t)
	return nil
}

func (c *Client) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: c.remote, Err: err}
}
