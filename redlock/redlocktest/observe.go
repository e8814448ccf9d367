package redlocktest

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Exchange is a command that a master has executed, and its reply, which may not
// have left yet, and may never arrive.
type Exchange struct {
	Path    *Path    // how the command came; nil if not by a [Path]
	Command []string // with its name in upper case
	Reply   []byte   // as on the wire
}

// Observe has f called for every command from now on, right after its execution and
// before its reply is sent; nil ends that. Handshakes are included, what a script
// calls is not, nor what is published. f must neither block nor call methods of the
// master but [Master.Miniredis], and that only for a reply of less than 4096 bytes
// on a connection without subscriptions: else the server may still be locked.
func (m *Master) Observe(f func(Exchange)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.observer = f
}

// exchanges pairs the commands of one connection with their replies. The server
// reads a command ahead, so several can wait for their reply.
type exchanges struct {
	mu       sync.Mutex
	commands []sent
	rest     []byte // the beginning of a reply
	reply    []byte // the first replies to a command that gets several
	replies  int    // how many these are

	subscriptions atomic.Int32 // to channels and patterns, as the server last said
}

func (e *exchanges) asked(command sent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commands = append(e.commands, command)
}

// piece is what goes on to the client in one go.
type piece struct {
	raw     []byte
	message bool // published, and whole; else replies, or parts of some
}

// answered takes bytes of replies and returns the pieces to send on and what is
// complete with them. A reply that came in one piece is sent as amend has it.
func (e *exchanges) answered(p []byte, amend func(sent, []byte) []byte) (out []piece, complete []Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := len(e.rest) // has been sent on
	e.rest = append(e.rest, p...)
	on := func(raw []byte, message bool) {
		switch last := len(out) - 1; {
		case len(raw) == 0:
		case message || last < 0 || out[last].message:
			out = append(out, piece{bytes.Clone(raw), message})
		default:
			out[last].raw = append(out[last].raw, raw...)
		}
	}
	for {
		n := replyLength(e.rest)
		if n == 0 {
			on(e.rest[gone:], false)
			return out, complete
		}
		reply := e.rest[:n]
		e.rest = e.rest[n:]
		answers, last := false, 0 // nobody's: published
		if len(e.commands) > 0 {
			answers, last = fits(e.commands[0].command, reply)
		}
		if answers && gone == 0 {
			reply = amend(e.commands[0], reply)
		}
		on(reply[gone:], gone == 0 && !answers && isMessage(reply))
		gone = 0
		if n, told := subscriptions(reply); told && (!answers || strings.HasSuffix(e.commands[0].command[0], "SUBSCRIBE")) {
			e.subscriptions.Store(n)
		}
		if !answers {
			continue
		}
		e.reply = append(e.reply, reply...)
		if e.replies++; e.replies < last {
			continue
		}
		complete = append(complete, Exchange{Command: e.commands[0].command, Reply: e.reply})
		e.commands, e.reply, e.replies = e.commands[1:], nil, 0
	}
}

// fits tells whether a reply belongs to the command, rather than to nobody because it
// was published, and how many such replies the command gets. Subscribing is confirmed
// channel by channel, in RESP3 by pushes; of an UNSUBSCRIBE that names no channels only
// the first confirmation is taken.
func fits(command []string, reply []byte) (answers bool, of int) {
	kind := messageKind(reply)
	switch verb := command[0]; verb {
	case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE":
		if kind == "" { // an error, or the word that it is queued
			return true, 1
		}
		return kind == strings.ToLower(verb), len(command) - 1
	case "PING", "QUIT": // the others that RESP2 allows a subscriber
		return kind == "" || kind == "pong", 1
	}
	return reply[0] != '>', 1
}

// messageKind is the first string of an array or a push, such as "message", or "" of
// any other reply.
func messageKind(reply []byte) string {
	if reply[0] != '*' && reply[0] != '>' {
		return ""
	}
	lines := bytes.SplitN(reply, []byte("\r\n"), 4)
	if len(lines) < 4 || lines[1][0] != '$' {
		return ""
	}
	return string(lines[2])
}

// replyLength is the length of the reply at the start of b, or 0 if it is not
// complete.
func replyLength(b []byte) (n int) {
	for parts := 1; parts > 0; parts-- {
		line, _, ok := bytes.Cut(b[n:], []byte("\r\n"))
		if !ok || len(line) == 0 {
			return 0
		}
		n += len(line) + len("\r\n")
		count, _ := strconv.Atoi(string(line[1:]))
		if count > len(b) {
			count = len(b) // more than there can be of anything
		}
		switch line[0] {
		case '$', '=', '!':
			if count >= 0 {
				n += count + len("\r\n")
			}
		case '%':
			parts += 2 * max(count, 0)
		case '|':
			parts += 2*max(count, 0) + 1 // and then comes what it is about
		case '*', '~', '>':
			parts += max(count, 0)
		}
		if n > len(b) {
			return 0
		}
	}
	return n
}
