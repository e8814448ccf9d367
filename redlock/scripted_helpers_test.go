package redlock_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

type frame struct {
	kind byte
	text string // of a scalar
}

// firstFrame reads one frame of RESP2 or RESP3. If ok is false, kind is the kind with which the
// frame began.
func firstFrame(b []byte) (f frame, rest []byte, ok bool) {
	if len(b) > 0 {
		f.kind = b[0]
	}
	end := bytes.IndexByte(b, '\n')
	if end < 2 || b[end-1] != '\r' {
		return f, nil, false
	}
	f.text, rest = string(b[1:end-1]), b[end+1:]
	if strings.IndexByte("+-:_,#(", f.kind) >= 0 {
		return f, rest, true
	}
	n, err := strconv.Atoi(f.text)
	if err != nil || n < -1 {
		return f, nil, false
	}
	if n == -1 {
		return frame{kind: '_'}, rest, true
	}
	switch f.kind {
	case '$', '!', '=':
		if n > len(rest)-2 {
			return f, nil, false
		}
		// The bytes that end the text are not checked; its length says where it ends.
		f.text, rest = string(rest[:n]), rest[n+2:]
		if f.kind == '=' {
			if n < 4 || f.text[3] != ':' {
				return f, nil, false
			}
			f.text = f.text[4:]
		}
		return f, rest, true
	case '*', '~', '>', '%', '|':
		each := 1
		if f.kind == '%' || f.kind == '|' {
			each = 2
		}
		for range n {
			for range each {
				// An attribute belongs to the element that follows it.
				for inner := (frame{kind: '|'}); inner.kind == '|'; {
					if inner, rest, ok = firstFrame(rest); !ok {
						return f, nil, false
					}
				}
			}
		}
		return f, rest, true
	}
	return f, nil, false
}

// scripted is a node in memory that works, except for its answer to one kind of command or to the
// handshake. It never waits, and nobody waits for it: its answer to a command can be read before
// the write of the command has returned.
type scripted struct {
	op     string
	reply  []byte
	silent bool

	mu      sync.Mutex
	value   string
	sets    [][]string // the arguments of each SET
	asked   bool       // a command of op has arrived
	replied []byte     // the answer to it
}

func (s *scripted) client(protocol int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:            "127.0.0.1:1", // a name would be looked up
		Protocol:        protocol,
		MaxRetries:      -1,
		DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			// A release whose outcome is indeterminate is repeated on another connection, and waits
			// for that answer. Here there is no answer to wait for.
			if s.op == "release" && s.wasAsked() {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return &scriptedConn{node: s}, nil
		},
	})
}

// said returns everything that the operation was answered.
func (s *scripted) said() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replied
}

func (s *scripted) wasAsked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *scripted) answer(args []string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	op, well := "", "-ERR unknown command\r\n"
	switch name := strings.ToLower(args[0]); {
	case name == "hello":
		op = "shake hands"
	case name == "set":
		op, well = "acquire", "+OK\r\n"
		s.value = args[2]
		s.sets = append(s.sets, args)
	case strings.HasPrefix(name, "eval") && args[2] == "1":
		op, well = "extend", ":1\r\n"
	case strings.HasPrefix(name, "eval") && args[2] == "2":
		op, well = "release", ":1\r\n"
	}
	if op == "" || op != s.op {
		return []byte(well)
	}
	said := bytes.ReplaceAll(s.reply, []byte("CUTVALUE"), []byte(s.value[:min(20, len(s.value))]))
	said = bytes.ReplaceAll(said, []byte("VALUE"), []byte(s.value))
	s.asked = true
	s.replied = append(s.replied, said...)
	return said
}

type scriptedConn struct {
	node   *scripted
	mu     sync.Mutex
	asked  []byte
	say    []byte
	closed bool
}

func (c *scriptedConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	c.asked = append(c.asked, b...)
	for len(c.asked) > 0 {
		args, rest, ok := request(c.asked)
		if !ok {
			break
		}
		c.asked = rest
		c.say = append(c.say, c.node.answer(args)...)
	}
	return len(b), nil
}

// request takes a command, an array of bulk strings, from the bytes that were written.
func request(b []byte) (args []string, rest []byte, ok bool) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || line[0] != '*' {
		return nil, b, false
	}
	n, err := strconv.Atoi(string(line[1:]))
	for range n {
		f, after, ok := firstFrame(rest)
		if !ok || err != nil {
			return nil, b, false
		}
		args, rest = append(args, f.text), after
	}
	return args, rest, true
}

func (c *scriptedConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case len(c.say) > 0:
		n := copy(b, c.say)
		c.say = c.say[n:]
		return n, nil
	case c.node.silent:
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}
	return 0, io.EOF
}

func (c *scriptedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (*scriptedConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

func (*scriptedConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (*scriptedConn) SetDeadline(time.Time) error { return nil }

func (*scriptedConn) SetReadDeadline(time.Time) error { return nil }

func (*scriptedConn) SetWriteDeadline(time.Time) error { return nil }
