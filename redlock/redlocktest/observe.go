package redlocktest

import (
	"bytes"
	"strconv"
	"sync"
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
// calls is not. f runs on the connection's goroutine, and must neither block nor
// call methods of the master but [Master.Miniredis].
func (m *Master) Observe(f func(Exchange)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.observer = f
}

// exchanges pairs the commands of one connection with their replies. The server
// reads a command ahead, so several can wait for their reply.
type exchanges struct {
	mu       sync.Mutex
	commands [][]string
	reply    []byte // the beginning of one
}

func (e *exchanges) asked(command []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commands = append(e.commands, command)
}

// answered takes bytes of replies and returns what is complete with them.
func (e *exchanges) answered(p []byte) (complete []Exchange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reply = append(e.reply, p...)
	for len(e.commands) > 0 {
		n := replyLength(e.reply)
		if n == 0 {
			break
		}
		if e.reply[0] != '>' { // a push belongs to no command
			complete = append(complete, Exchange{Command: e.commands[0], Reply: bytes.Clone(e.reply[:n])})
			e.commands = e.commands[1:]
		}
		e.reply = e.reply[n:]
	}
	return complete
}

// replyLength is the length of the reply at the start of b, or 0 if it is not
// complete.
func replyLength(b []byte) int {
	line, _, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(line) == 0 {
		return 0
	}
	n := len(line) + len("\r\n")
	count, _ := strconv.Atoi(string(line[1:]))
	switch line[0] {
	case '$', '=', '!':
		if count >= 0 {
			n += count + len("\r\n")
		}
	case '%', '|':
		count *= 2
		fallthrough
	case '*', '~', '>':
		for range count {
			if n > len(b) {
				return 0
			}
			part := replyLength(b[n:])
			if part == 0 {
				return 0
			}
			n += part
		}
	}
	if n > len(b) {
		return 0
	}
	return n
}
