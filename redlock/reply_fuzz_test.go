package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock"
)

// What a node says is input. Whatever the bytes are, nothing panics or waits for
// a node that is not silent; a lock is handed out, an extension or a release
// succeeds, only on the node's own yes; and what the node quotes of a value is
// shown to nobody.
//
// The oracle reads the reply with a parser of its own, [firstFrame]. In the reply
// VALUE stands for the lock's value and CUTVALUE for the first part of it, as a
// node may quote either.
func FuzzReply(f *testing.F) {
	quoted := "ERR unknown command 'SET', with args beginning with: 'orders' 'VALUE' "
	for _, reply := range []string{
		"+OK\r\n", "$2\r\nOK\r\n", "=6\r\ntxt:OK\r\n", "+ok\r\n", "+OK \r\n", "+OK\n", "*1\r\n+OK\r\n",
		":1\r\n", ":0\r\n", ":-7\r\n", ":2\r\n", ":01\r\n", "+1\r\n", "$1\r\n1\r\n", "(1\r\n", ",1\r\n", "#t\r\n",
		"$-1\r\n", "*-1\r\n", "_\r\n", "$0\r\n\r\n", "",
		"|1\r\n+a\r\n+b\r\n+OK\r\n", ">2\r\n$10\r\ninvalidate\r\n*1\r\n+k\r\n+OK\r\n", ">2\r\n$10\r\ninvalidate\r\n_\r\n:1\r\n",
		">3\r\n+message\r\n+c\r\n+OK\r\n", "%1\r\n*0\r\n+OK\r\n",
		"$9223372036854775807\r\n", "*9223372036854775807\r\n", "%9223372036854775807\r\n", "$-7\r\n", "*1\r\n*1\r\n*1\r\n",
		"-NOSCRIPT No matching script\r\n", "-NOSCRIPT\r\n:1\r\n", "-MOVED 1 127.0.0.1:1\r\n", "-LOADING\r\n", "-NOAUTH\r\n",
		"-ERR I do not like VALUE\r\n", "-ERR CUTVALUE...\r\n", "-" + quoted + "\r\n", "?VALUE\r\n", "VALUE\r\n", "+VALUE\r\n",
		fmt.Sprintf("!%d\r\n%s\r\n", len(quoted)+31, quoted), "HTTP/1.1 400 VALUE\r\n\r\n",
	} {
		for what := range uint8(4) {
			f.Add(what, []byte(reply))
		}
		f.Add(uint8(resp2|silent), []byte(reply))
	}
	f.Fuzz(func(t *testing.T, what uint8, reply []byte) {
		if len(reply) > 4<<10 || greedy(reply) {
			return
		}
		s := &scripted{
			op:     [...]string{"acquire", "extend", "release", "shake hands"}[what&3],
			silent: what&silent != 0,
			reply:  reply,
		}
		protocol := 3
		if what&resp2 != 0 {
			protocol = 2
		}
		said := tell(t, s, protocol)

		yes := evidence(s.op, s.said(), protocol)
		switch {
		case s.op == "shake hands": // what the node says of itself answers nothing
		case said.yes && yes == noEvidence:
			t.Errorf("%s took %q for a yes", s.op, s.said())
		case !said.yes && yes == plainYes:
			t.Errorf("%s did not take %q for a yes: %v", s.op, s.said(), said.err)
		}
		// A value that is cut before its second dash looks like nothing.
		if shown := s.value[:min(14, len(s.value))]; shown != "" && strings.Contains(said.text, shown) {
			t.Errorf("%s after %q shows the value %s: %s", s.op, s.said(), s.value, said.text)
		}
	})
}

// The bits of FuzzReply's first argument, above the operation's.
const (
	resp2  = 4
	silent = 8 // after the reply the node says nothing, instead of hanging up
)

// outcome is what became of the operation that got the reply.
type outcome struct {
	yes  bool
	err  error
	text string // everything that the program is shown
}

// tell acquires, extends and releases on one node. The timeout is one that no
// machine is too slow for; as the node never keeps anybody waiting, half of it has
// passed only if something waits for nothing.
func tell(t *testing.T, s *scripted, protocol int) (said outcome) {
	const patience = 20 * time.Second
	begin := time.Now()
	client := s.client(protocol)
	var log bytes.Buffer
	r, err := redlock.New([]redis.UniversalClient{client}, redlock.Config{
		NodeTimeout: patience,
		Logger:      slog.New(slog.NewTextHandler(&log, nil)),
		Trace:       func(tr redlock.Trace) { fmt.Fprintf(&log, "%+v\n", tr) },
	})
	if err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{}
	lock, err := r.TryAcquire(ctx, key, time.Hour)
	errs["acquire"] = err
	if err == nil {
		errs["extend"] = lock.Extend(ctx, 2*time.Hour)
		errs["release"] = lock.Release(ctx)
	} else if lock != nil {
		t.Errorf("a lock and %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d > patience/2 {
		t.Errorf("took %v", d)
	}
	err, asked := errs[s.op]
	said.yes, said.err, said.text = asked && err == nil, err, log.String()
	for _, err := range errs {
		said.text += "\n" + everything(err)
	}
	return said
}

// everything is the text of an error and of all that it wraps.
func everything(err error) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v\n%+v\n", err, err)
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		text += everything(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range err.Unwrap() {
			text += everything(err)
		}
	}
	return text
}

type verdict uint8

const (
	noEvidence verdict = iota
	evident            // in a shape that need not be understood
	plainYes           // what a server says
)

// evidence is the oracle. The stream is everything that the node said to the
// operation. An answer may follow frames that are not answers: attributes and,
// in RESP3, pushes. A script that the node does not know is sent again.
func evidence(op string, stream []byte, protocol int) verdict {
	// A release may have woken somebody.
	want := map[string][]string{"acquire": {"+OK\r\n", "$2\r\nOK\r\n"}, "release": {":1\r\n", ":2\r\n"}}[op]
	if want == nil {
		want = []string{":1\r\n"}
	}
	for _, w := range want {
		if string(stream) == w {
			return plainYes
		}
	}
	again := true
	for {
		first, rest, ok := firstFrame(stream)
		stream = rest
		switch {
		case ok && first.kind == '|', ok && first.kind == '>' && protocol == 3:
		case !ok && protocol == 3 && (first.kind == '|' || first.kind == '>'):
			// go-redis logs that such a frame is broken and reads on in the
			// middle of it. No lock can tell.
			return evident
		case !ok:
			return noEvidence
		case first.kind == '-' && again && strings.HasPrefix(first.text, "NOSCRIPT"),
			first.kind == '!' && again && strings.HasPrefix(first.text, "NOSCRIPT"):
			again = false
		case op == "acquire":
			// go-redis does not tell one kind of text from another, nor from the
			// text of a number.
			if strings.IndexByte("+$=:,", first.kind) >= 0 && first.text == "OK" {
				return evident
			}
			return noEvidence
		default:
			if n, err := strconv.ParseInt(first.text, 10, 64); first.kind == ':' && err == nil && (n == 1 || n == 2 && op == "release") {
				return evident
			}
			return noEvidence
		}
	}
}

type frame struct {
	kind byte
	text string // of a scalar
}

// firstFrame reads one frame of RESP2 or RESP3. Where ok is false, kind is what
// the frame began as.
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
		// What closes the text is not looked at; its length says where it ends.
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
				// An attribute belongs to the element behind it.
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

// greedy finds a length for which go-redis asks the system for more memory than
// there may be, which ends the process. What is beyond any address space it is
// refused, and panics.
func greedy(reply []byte) bool {
	for _, m := range lengths.FindAllSubmatch(reply, -1) {
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err == nil && n > 4<<10 && n < 1<<48 {
			return true
		}
	}
	return false
}

var lengths = regexp.MustCompile(`[$!=*~>%|][-+]?([0-9]+)`)

// scripted is a node in memory that is well, but for what it says to one kind of
// command or to the handshake. It never waits, nor is it waited for: what it says to a command is
// there to be read before the write of the command has returned.
type scripted struct {
	op     string
	reply  []byte
	silent bool

	mu    sync.Mutex
	value string
	sets  [][]string // the arguments of each SET
	asked bool       // it has been asked for what op does
	told  []byte     // what it said to that
}

func (s *scripted) client(protocol int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:            "127.0.0.1:1", // a name would be looked up
		Protocol:        protocol,
		MaxRetries:      -1,
		DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			// A release whose outcome is indeterminate is repeated on another connection, and
			// waits for that answer. There is none to wait for.
			if s.op == "release" && s.wasAsked() {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return &scriptedConn{node: s}, nil
		},
	})
}

// said is what the operation was told, in whole.
func (s *scripted) said() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
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
	s.told = append(s.told, said...)
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

// request takes a command, an array of bulk strings, off what was written.
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
