package subject

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"time"
)

// Sent counts the commands that clients send, including each one of a pipeline. It reads the
// bytes on the connections, because hooks of the client see neither a SUBSCRIBE nor commands
// that a client sends by itself.
type Sent struct{ commands atomic.Int64 }

// Commands returns the number of commands so far. It is 0 for a nil Sent.
func (s *Sent) Commands() int64 {
	if s == nil {
		return 0
	}
	return s.commands.Load()
}

// dial opens a TCP connection with go-redis's defaults, and counts the commands sent on it.
func (s *Sent) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}
	return s.dialWith(ctx, &d, network, addr)
}

func (s *Sent) dialWith(ctx context.Context, d *net.Dialer, network, addr string) (net.Conn, error) {
	c, err := d.DialContext(ctx, network, addr)
	if tcp, ok := c.(*net.TCPConn); ok && s != nil {
		return &countedConn{TCPConn: tcp, requests: requests{sent: &s.commands}}, err
	}
	return c, err
}

// countedConn is a TCP connection whose requests are counted. Clients see it as a TCP
// connection.
type countedConn struct {
	*net.TCPConn
	requests requests
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	c.requests.note(b[:n])
	return n, err
}

// requests counts RESP requests, which are arrays of strings, in a stream that may be cut
// anywhere.
type requests struct {
	sent *atomic.Int64
	line []byte // of a header, as far as it has been written
	skip int    // bytes of a string that are still to come, with its end of line
}

// note parses the next bytes.
func (r *requests) note(b []byte) {
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, len(b))
			r.skip -= n
			b = b[n:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			r.line = append(r.line, b...)
			return
		}
		r.header(append(r.line, b[:end]...))
		r.line = r.line[:0]
		b = b[end+1:]
	}
}

// header parses a line without its line feed: "*3\r" begins a request and "$5\r" a string of
// it.
func (r *requests) header(line []byte) {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	switch {
	case len(line) == 0:
	case line[0] == '*':
		r.sent.Add(1)
	case line[0] == '$':
		if size, err := strconv.Atoi(string(line[1:])); err == nil {
			r.skip = size + len("\r\n")
		}
	}
}
