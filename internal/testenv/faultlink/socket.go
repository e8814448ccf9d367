package faultlink

import (
	"bytes"
	"net"
)

// ServeClient connects a client's socket, with a goroutine for each direction. Call it before
// the server can close the connection.
func (c *Conn) ServeClient(client net.Conn) {
	c.holders.Add(2)
	go func() {
		defer c.release()
		_ = read(client, c.feed)
		c.hangUp()
	}()
	go func() {
		defer c.release()
		defer client.Close() // this also ends the other goroutine
		for {
			reply, err := c.replies.receive(nil)
			if err != nil {
				return
			}
			// A client that has gone does not need the reply.
			_, _ = client.Write(reply)
		}
	}()
}

// ServeServer connects a server's socket, with a goroutine for each direction. If the socket
// can be half-closed, the client's end reaches the server as such. sent is called with bytes
// that are about to reach the server. lost is called for each reply, and reports whether to
// lose it, which also cuts the connection.
func (c *Conn) ServeServer(server net.Conn, sent func([]byte), lost func() bool) {
	c.holders.Add(1)
	go func() {
		defer c.release()
		for {
			request, err := c.Receive()
			if err != nil {
				if end, ok := server.(interface{ CloseWrite() error }); ok {
					_ = end.CloseWrite()
				}
				return
			}
			sent(request)
			if _, err := server.Write(request); err != nil {
				c.Cut() // the server is gone
				return
			}
		}
	}()
	go func() {
		defer c.Close()
		defer server.Close()
		_ = read(server, func(reply []byte) bool {
			switch {
			case c.Mute(): // the server goes on, as nothing blocks it
			case lost():
				delay, _ := c.Path.Draw(ToClient)
				c.reply(reply, 0, c.due(ToClient, delay))
			default:
				c.Reply(bytes.Clone(reply), 0)
			}
			return true
		})
	}()
}

// read hands bytes on as they come, until an error or until take returns false.
func read(from net.Conn, take func([]byte) bool) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !take(buf[:n]) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
