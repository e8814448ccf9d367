package redisserver

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/quorumlock/redlock/internal/testenv/faultlink"
)

// CutReplies loses the replies to the next n requests. The server executes the commands, the
// replies are dropped, and the client's connection breaks. A request is what a client sends in
// one go: a command or a pipeline. If names of commands are given, only requests with such a
// command count. Otherwise any request counts, even the handshake of a new connection. Names
// are found in plain RESP, not in TLS. CutReplies(0) ends it.
func (l *Link) CutReplies(n int, commands ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts = n
	l.cutOnly = nil
	for _, name := range commands {
		l.cutOnly = append(l.cutOnly, respName(name))
	}
}

// CutsLeft returns how many requests CutReplies has yet to leave without a reply.
func (l *Link) CutsLeft() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// fate decides whether a request gets replies.
func (l *Link) fate(request []byte) faultlink.Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts == 0 {
		return faultlink.Pass
	}
	request = bytes.ToUpper(request)
	named := func(name string) bool { return bytes.Contains(request, []byte(name)) }
	if len(l.cutOnly) > 0 && !slices.ContainsFunc(l.cutOnly, named) {
		return faultlink.Pass
	}
	l.cuts--
	return faultlink.LoseReply
}

// respName returns a command's name as on the wire.
func respName(name string) string {
	return fmt.Sprintf("\r\n$%d\r\n%s\r\n", len(name), strings.ToUpper(name))
}
