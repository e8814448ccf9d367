package faultlink

import (
	"bytes"
	"net"
)

// serveClient connects the client's socket, with a goroutine for each direction.
func (c *Conn) serveClient() {
	c.holders.Add(2)
	go func() {
		defer c.release()
		read(c.Client, c.feed)
		c.hangUp()
	}()
	go func() {
		defer c.release()
		defer c.Client.Close() // this also ends the other goroutine
		for {
			reply, err := c.replies.receive(nil)
			if err != nil {
				return
			}
			// A client that has gone does not need the reply.
			_, _ = c.Client.Write(reply)
		}
	}()
}

// serveServer connects the server's socket, with a goroutine for each direction. If the socket
// can be half-closed, the client's end reaches the server as such.
func (c *Conn) serveServer() {
	c.holders.Add(1)
	go func() {
		defer c.release()
		for {
			request, err := c.Receive()
			if err != nil {
				if end, ok := c.Server.(interface{ CloseWrite() error }); ok {
					_ = end.CloseWrite()
				}
				return
			}
			if _, err := c.Server.Write(request); err != nil {
				c.Cut() // the server is gone
				return
			}
		}
	}()
	go func() {
		defer c.Close()
		defer c.Server.Close()
		read(c.Server, func(reply []byte) bool {
			c.Reply(bytes.Clone(reply), 0)
			return true
		})
	}()
}

// read hands bytes on as they come, until an error or until take returns false.
func read(from net.Conn, take func([]byte) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !take(buf[:n]) || err != nil {
			return
		}
	}
}
