package redlock_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock"
)

// A node's answer is input. Whatever the bytes are, nothing panics or waits for a node that is not
// silent. A lock is granted, or an extension or a release succeeds, only if the node itself says
// yes. Values that the node quotes are not shown.
//
// The oracle reads the reply with a parser of its own, [firstFrame]. In the reply, VALUE stands for
// the lock's value and CUTVALUE for the first part of it, as a node may quote either.
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
		case s.op == "shake hands": // this answer says nothing about the lock
		case said.yes && yes == noEvidence:
			t.Errorf("%s took %q for a yes", s.op, s.said())
		case !said.yes && yes == plainYes:
			t.Errorf("%s did not take %q for a yes: %v", s.op, s.said(), said.err)
		}
		// A value that is cut before its second dash cannot be recognized.
		if shown := s.value[:min(14, len(s.value))]; shown != "" && strings.Contains(said.text, shown) {
			t.Errorf("%s after %q shows the value %s: %s", s.op, s.said(), s.value, said.text)
		}
	})
}

// The bits of FuzzReply's first argument, above the operation's.
const (
	resp2  = 4
	silent = 8 // after the reply the node is silent, instead of hanging up
)

// outcome is the result of the operation that got the reply.
type outcome struct {
	yes  bool
	err  error
	text string // all text that the program is shown
}

// tell acquires, extends and releases on one node. No machine is too slow for the timeout. The node
// never makes a caller wait, so half of the timeout passes only if something waits for nothing.
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

// everything returns the text of an error and of all errors that it wraps.
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
	evident            // yes, in a form that need not be understood
	plainYes           // yes, as servers say it
)

// evidence is the oracle. The stream has all bytes that the node sent to the operation. An answer
// may follow frames that are not answers: attributes and, in RESP3, pushes. A script that the node
// does not know is sent again.
func evidence(op string, stream []byte, protocol int) verdict {
	// A release may have woken another client.
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
			// go-redis logs that such a frame is broken, and continues to read in the middle of it.
			// A lock cannot notice that.
			return evident
		case !ok:
			return noEvidence
		case first.kind == '-' && again && strings.HasPrefix(first.text, "NOSCRIPT"),
			first.kind == '!' && again && strings.HasPrefix(first.text, "NOSCRIPT"):
			again = false
		case op == "acquire":
			// go-redis distinguishes neither kinds of text, nor text from the text of a number.
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

// greedy finds a length for which go-redis asks the system for more memory than there may be, which
// ends the process. If the length is beyond any address space, the allocation fails with a panic.
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
