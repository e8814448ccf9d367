package inmemory

import (
	"bytes"
	"strconv"
	"strings"
)

// Commands returns the commands that reached the server since the start or the last
// [Master.ResetCommands], oldest first, each as its upper-case name and its arguments.
func (m *Master) Commands() [][]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	log := make([][]string, len(m.commands))
	for i, c := range m.commands {
		log[i] = append([]string(nil), c...)
	}
	return log
}

// ResetCommands empties the log of commands.
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
	if m.faults.stall != nil {
		return sent{}, m.faults.stall
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
func isHandshake(request []byte) bool {
	for len(request) > 0 {
		name := ""
		n, _ := parseCommand(request, func(arg []byte) {
			if name == "" {
				name = strings.ToUpper(string(arg))
			}
		})
		switch name {
		case "HELLO", "AUTH", "SELECT", "CLIENT", "READONLY":
		default:
			return false
		}
		request = request[n:]
	}
	return true
}

// wholeCommands returns the length of the complete commands at the start of b. bad means that
// the rest cannot become a command.
func wholeCommands(b []byte) (whole int, bad bool) {
	for whole < len(b) {
		n, bad := parseCommand(b[whole:], func([]byte) {})
		if bad || n == 0 {
			return whole, bad
		}
		whole += n
	}
	return whole, false
}

// parseCommand calls arg for each string of the command at the start of b, an array of bulk
// strings. It returns the command's length in bytes, or 0 if it is not complete.
func parseCommand(b []byte, arg func([]byte)) (n int, bad bool) {
	count, n, bad := parseLength(b, '*')
	if n == 0 {
		return 0, bad
	}
	for range count {
		length, head, bad := parseLength(b[n:], '$')
		if bad || length < 0 {
			return 0, true
		}
		end := n + head + length + len("\r\n")
		if head == 0 || len(b) < end {
			return 0, false
		}
		arg(b[n+head : n+head+length])
		n = end
	}
	return n, false
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
