package redisserver

import (
	"bytes"
	"strings"
	"sync"
)

// serverLog receives the output of a server. It closes ready at the line that contains sign,
// and keeps the last lines for error messages.
type serverLog struct {
	ready chan struct{}

	mu   sync.Mutex
	sign string // lower case; empty once seen
	part []byte // of a line not yet ended
	tail []string
}

const tailLines = 30

func newServerLog(sign string) *serverLog {
	return &serverLog{ready: make(chan struct{}), sign: strings.ToLower(sign)}
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		line, rest, found := bytes.Cut(l.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.line(string(line))
		l.part = rest
	}
}

func (l *serverLog) line(line string) {
	l.tail = append(l.tail, line)
	if len(l.tail) > tailLines {
		l.tail = l.tail[1:]
	}
	if l.sign != "" && strings.Contains(strings.ToLower(line), l.sign) {
		l.sign = ""
		close(l.ready)
	}
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(l.tail[:len(l.tail):len(l.tail)], string(l.part)), "\n")
}
