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
	l.orders++
	l.cutOnly = nil
	for _, name := range commands {
		l.cutOnly = append(l.cutOnly, respName(name))
	}
}

// CutsLeft returns how many replies CutReplies has yet to lose.
func (l *Link) CutsLeft() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// cutter finds the replies of one connection that CutReplies loses. The link's mutex guards it.
type cutter struct {
	link   *Link
	marked int    // the call of CutReplies that a command under way is subject to; 0: none
	recent string // the end of the bytes sent, upper case
}

// sent marks the connection if its bytes name a command whose reply is to be cut. data is about
// to reach the server; the end of the bytes before it counts too.
func (c *cutter) sent(data []byte) {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == 0 || len(l.cutOnly) == 0 {
		c.recent = ""
		return
	}
	text := c.recent + strings.ToUpper(string(data))
	if slices.ContainsFunc(l.cutOnly, func(name string) bool { return strings.Contains(text, name) }) {
		c.marked = l.orders
		text = ""
	}
	c.recent = text[max(0, len(text)-64):]
}

// lost reports whether a reply is to be lost, and counts it.
func (c *cutter) lost() bool {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == 0 || (len(l.cutOnly) > 0 && c.marked != l.orders) {
		return false
	}
	l.cuts--
	return true
}

// respName returns a command's name as on the wire.
func respName(name string) string {
	return fmt.Sprintf("\r\n$%d\r\n%s\r\n", len(name), strings.ToUpper(name))
}
