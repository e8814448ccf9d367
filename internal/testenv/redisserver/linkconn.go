package redisserver

import (
	"context"
	"net"
	"sync"
	"time"
)

// linkConn is one connection through a Link.
type linkConn struct {
	link           *Link
	ctx            context.Context // ends when the connection is closed
	cancel         context.CancelFunc
	client, server net.Conn

	// guarded by link.mu
	marked bool   // a command whose reply is to be cut is under way
	recent string // the end of the bytes sent, upper case
}

// close breaks the connection on both sides at once.
func (c *linkConn) close() {
	c.cancel()
	_ = c.client.Close()
	_ = c.server.Close()
}

// run returns when both directions have ended.
func (c *linkConn) run() {
	defer c.close()
	var g sync.WaitGroup
	for direction := range 2 {
		from, to := c.client, c.server
		if direction == down {
			from, to = to, from
		}
		q := &transit{more: make(chan struct{}, 1)}
		g.Go(func() { c.read(direction, from, q) })
		g.Go(func() { c.write(direction, to, q) })
	}
	g.Wait()
}

// A parcel is bytes from one read, or the end of the stream (nil data), and the time at which
// it may be passed on.
type parcel struct {
	data []byte
	due  time.Time
}

// read takes bytes as they come, whatever the pace of the receiver. An error counts as the end
// of the stream.
func (c *linkConn) read(direction int, from net.Conn, q *transit) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c.link.mu.Lock()
		due := time.Now().Add(c.link.delay[direction])
		c.link.mu.Unlock()
		if n > 0 {
			q.put(parcel{append([]byte(nil), buf[:n]...), due})
		}
		if err != nil {
			q.put(parcel{nil, due})
			return
		}
	}
}

// write passes parcels on when they are due and the link is not stalled. The end of a stream
// is passed on after its bytes. A server that is gone ends the connection; a client that is
// gone does not.
func (c *linkConn) write(direction int, to net.Conn, q *transit) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	lost := false // the client is gone; replies are dropped
	for {
		p, err := q.take(c.ctx)
		if err != nil {
			return
		}
		timer.Reset(time.Until(p.due))
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
		if c.link.passage(c.ctx) != nil {
			return
		}
		switch {
		case p.data == nil:
			if end, ok := to.(interface{ CloseWrite() error }); ok {
				_ = end.CloseWrite()
			}
			return
		case lost:
			continue
		case direction == up:
			c.link.sent(c, p.data)
		case c.link.cut(c):
			// The server still executes the commands that are under way, and sees the end
			// after them. Its replies are dropped.
			lost = true
			_ = to.Close()
			continue
		}
		if _, err := to.Write(p.data); err != nil {
			if direction == up {
				c.close()
				return
			}
			lost = true // bytes that the client sent before it left still arrive
		}
	}
}

// transit holds the parcels under way in one direction.
type transit struct {
	more chan struct{} // has a token when parcels is not empty

	mu      sync.Mutex
	last    time.Time
	parcels []parcel
}

// put adds a parcel. It is not due before the parcel in front of it.
func (q *transit) put(p parcel) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.due.Before(q.last) {
		p.due = q.last
	}
	q.last = p.due
	q.parcels = append(q.parcels, p)
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take waits for the next parcel, until the connection ends.
func (q *transit) take(ctx context.Context) (parcel, error) {
	for {
		q.mu.Lock()
		if len(q.parcels) > 0 {
			p := q.parcels[0]
			q.parcels = q.parcels[1:]
			q.mu.Unlock()
			return p, nil
		}
		q.mu.Unlock()
		select {
		case <-q.more:
		case <-ctx.Done():
			return parcel{}, ctx.Err()
		}
	}
}
