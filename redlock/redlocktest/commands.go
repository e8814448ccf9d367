package redlocktest

import (
	"bytes"
	"strconv"
	"strings"
)

// command is a command as the client sent it.
type command struct {
	args []string
	raw  []byte
}

// Commands returns the commands that reached the server since the start or the last
// [Master.ResetCommands], oldest first, each as its upper-case name and its arguments.
// Handshakes are included. Commands that a script calls are not, nor those that were lost or
// still wait behind a stall or a delay. A command is in the log before its reply is sent.
// Killing or emptying the master does not empty the log.
func (m *Master) Commands() [][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	log := make([][]string, len(m.commands))
	for i, c := range m.commands {
		log[i] = append([]string(nil), c...)
	}
	return log
}

// ResetCommands empties the log of commands. Nothing else bounds it, so a long test should
// call this from time to time.
func (m *Master) ResetCommands() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands = nil
}

// record logs a command that goes to the server now, and returns how the server must treat it.
// If the master is stalled, it logs nothing, and returns a channel that is closed when it is
// time to try again. Both happen under one lock, so that nothing enters the log after Stall.
func (m *Master) record(args []string) (s sent, stalled <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.stalled() {
		return sent{}, m.faults.gate
	}
	args[0] = strings.ToUpper(args[0])
	m.commands = append(m.commands, args)
	s = sent{command: args, replica: m.identity.replica}
	if subscribes(args) {
		s.refused = m.faults.subscribing
	}
	return s, nil
}

// isHandshake reports whether a client library sends these commands by itself on a new
// connection.
func isHandshake(commands []command) bool {
	for _, c := range commands {
		switch strings.ToUpper(c.args[0]) {
		case "HELLO", "AUTH", "SELECT", "CLIENT", "READONLY":
		default:
			return false
		}
	}
	return true
}

// parseCommands splits b into its complete commands, which do not share its memory, and the
// incomplete rest. bad means that the rest cannot become a command. Like Redis, it ignores an
// empty array.
func parseCommands(b []byte) (commands []command, rest []byte, bad bool) {
	for len(b) > 0 {
		args, n, bad := parseCommand(b)
		if bad || n == 0 {
			return commands, b, bad
		}
		if len(args) > 0 {
			commands = append(commands, command{args: args, raw: bytes.Clone(b[:n])})
		}
		b = b[n:]
	}
	return commands, nil, false
}

// parseCommand returns the command at the start of b, an array of bulk strings, and its length
// in bytes, or 0 if it is not complete.
func parseCommand(b []byte) (args []string, n int, bad bool) {
	count, n, bad := parseLength(b, '*')
	if n == 0 {
		return nil, 0, bad
	}
	for range count {
		length, head, bad := parseLength(b[n:], '$')
		if bad || length < 0 {
			return nil, 0, true
		}
		end := n + head + length + len("\r\n")
		if head == 0 || len(b) < end {
			return nil, 0, false
		}
		args = append(args, string(b[n+head:n+head+length]))
		n = end
	}
	return args, n, false
}

// parseLength returns the length in a line such as "*3\r\n" at the start of b, and the line's
// own length in bytes, or 0 if the line is not complete.
func parseLength(b []byte, kind byte) (length, n int, bad bool) {
	if len(b) > 0 && b[0] != kind {
		return 0, 0, true
	}
	line, _, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok {
		return 0, 0, false
	}
	length, err := strconv.Atoi(string(line[1:]))
	if err != nil || length > 512<<20 { // the limit of Redis itself
		return 0, 0, true
	}
	return length, len(line) + len("\r\n"), false
}

func (m *Master) observing() func(Exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.observer
}
