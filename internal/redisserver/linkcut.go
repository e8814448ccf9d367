package redisserver

import (
	"fmt"
	"slices"
	"strings"
)

// CutReplies loses the next n replies: the server receives the command and acts
// on it, its reply is dropped and the client's connection is broken, with the
// replies to whatever else was pipelined on it. With the names of commands only
// their replies count; without, any, and so does the reply to the handshake of
// a new connection. Names are found in plain RESP, not in TLS. CutReplies(0)
// ends it.
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

// CutsLeft says how many replies CutReplies has still to lose.
func (l *Link) CutsLeft() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// sent marks a connection if the bytes about to reach the server, with the end
// of those before, name a command whose reply is to be cut.
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

// cut says whether the reply that is about to reach the client is to be lost.
func (l *Link) cut(c *linkConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == 0 || (len(l.cutOnly) > 0 && !c.marked) {
		return false
	}
	l.cuts--
	return true
}

// respName is a command's name as it goes over the wire.
func respName(name string) string {
	return fmt.Sprintf("\r\n$%d\r\n%s\r\n", len(name), strings.ToUpper(name))
}
