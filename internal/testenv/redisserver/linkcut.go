package redisserver

import (
	"fmt"
	"slices"
	"strings"
)

// CutReplies loses the next n replies. The server executes the command, its reply is dropped,
// and the client's connection breaks, with the replies to all other commands pipelined on it.
// If names of commands are given, only their replies count. Otherwise any reply counts, even
// the one to the handshake of a new connection. Names are found in plain RESP, not in TLS.
// CutReplies(0) ends it.
func (l *Link) CutReplies(n int, commands ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = n
	l.cutOnly = nil
	for _, name := range commands {
		l.cutOnly = append(l.cutOnly, respName(name))
	}
	for c := range l.conns {
		c.marked = false
	}
}

// CutsLeft returns how many replies CutReplies has yet to lose.
func (l *Link) CutsLeft() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// sent marks a connection if its bytes name a command whose reply is to be cut. data is about
// to reach the server; the end of the bytes before it counts too.
func (l *Link) sent(c *linkConn, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == 0 || len(l.cutOnly) == 0 {
		c.recent = ""
		return
	}
	text := c.recent + strings.ToUpper(string(data))
	if slices.ContainsFunc(l.cutOnly, func(name string) bool { return strings.Contains(text, name) }) {
		c.marked = true
		text = ""
	}
	c.recent = text[max(0, len(text)-64):]
}

// cut reports whether the reply that is about to reach the client is to be lost, and counts
// it.
func (l *Link) cut(c *linkConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == 0 || (len(l.cutOnly) > 0 && !c.marked) {
		return false
	}
	l.cuts--
	return true
}

// respName returns a command's name as on the wire.
func respName(name string) string {
	return fmt.Sprintf("\r\n$%d\r\n%s\r\n", len(name), strings.ToUpper(name))
}
