package inmemory

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Exchange is a command that a master has executed, and its reply, which may not have been
// sent yet, and may never arrive.
type Exchange struct {
	Path    *Path    // the path that the command came on; nil if none
	Command []string // with its name in upper case
	Reply   []byte   // as on the wire
}

// Observe makes the master call f for every later command, between its execution and its
// reply; nil ends that. Handshakes are included; commands called by scripts and published
// messages are not.
//
// f must not block, nor call methods of the master except [Master.Miniredis]. That is allowed
// only if the reply has less than 4096 bytes and the connection has no subscriptions:
// otherwise the server may still be locked.
func (m *Master) Observe(f func(Exchange)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.observer = f
}

// exchanges matches the commands of one connection with their replies. The server reads a
// command ahead, so several commands can wait for their replies.
type exchanges struct {
	mu       sync.Mutex
	commands []sent
	rest     []byte // the beginning of a reply
	reply    []byte // the first replies to a command that gets several
	replies  int    // how many replies reply holds

	subscriptions atomic.Int32 // to channels and patterns, as the server last reported
}

func (e *exchanges) asked(command sent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commands = append(e.commands, command)
}

// piece is a part of the server's output that is sent to the client in one go.
type piece struct {
	raw     []byte
	message bool // a whole published message; if false, replies or parts of them
}

// answered takes bytes of replies, and returns the pieces to send to the client and the
// exchanges that they complete. For a reply that came in one piece, it sends the result of
// amend.
func (e *exchanges) answered(p []byte, amend func(sent, []byte) []byte) (out []piece, complete []Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gone := len(e.rest) // already sent to the client
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
		answers, last := false, 0 // if no command is answered, it was published
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

// fits reports whether a reply answers the command or was published, and how many such replies
// the command gets. A subscription is confirmed channel by channel, in RESP3 by pushes. Only
// the first confirmation of an UNSUBSCRIBE without channels is taken.
func fits(command []string, reply []byte) (answers bool, of int) {
	kind := messageKind(reply)
	switch verb := command[0]; verb {
	case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE":
		if kind == "" { // an error, or QUEUED in a transaction
			return true, 1
		}
		return kind == strings.ToLower(verb), len(command) - 1
	case "PING", "QUIT": // the other commands that RESP2 allows a subscriber
		return kind == "" || kind == "pong", 1
	}
	return reply[0] != '>', 1
}

// messageKind returns the first string of an array or a push, such as "message", or "" for any
// other reply.
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

// replyLength returns the length of the reply at the start of b, or 0 if it is not complete.
func replyLength(b []byte) (n int) {
	for parts := 1; parts > 0; parts-- {
		line, _, ok := bytes.Cut(b[n:], []byte("\r\n"))
		if !ok || len(line) == 0 {
			return 0
		}
		n += len(line) + len("\r\n")
		count, _ := strconv.Atoi(string(line[1:]))
		if count > len(b) {
			count = len(b) // more elements or bytes than there can be
		}
		switch line[0] {
		case '$', '=', '!':
			if count >= 0 {
				n += count + len("\r\n")
			}
		case '%':
			parts += 2 * max(count, 0)
		case '|':
			parts += 2*max(count, 0) + 1 // followed by the reply that it describes
		case '*', '~', '>':
			parts += max(count, 0)
		}
		if n > len(b) {
			return 0
		}
	}
	return n
}
