package inmemory

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reply keeps its form in both protocols, even if it comes in pieces or between messages.
// miniredis's replies to other commands stay as they are.
func TestAmend(t *testing.T) {
	const refused = "-section (replication) is not supported\r\n"
	m := Start(t, 1).Master(0)
	text := m.info([]string{"replication"})
	info := fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	push := ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"
	for name, c := range map[string]struct {
		command   string
		replica   bool
		from, out string
		refused   string
	}{
		"alone":                        {"INFO", false, refused, info, ""},
		"behind a message":             {"INFO", false, push + refused, push + info, ""},
		"in a transaction":             {"EXEC", false, "*4\r\n:1\r\n" + refused + "*1\r\n$1\r\nv\r\n" + refused, "*4\r\n:1\r\n" + info + "*1\r\n$1\r\nv\r\n" + info, ""},
		"a transaction that was ended": {"EXEC", false, "*-1\r\n", "*-1\r\n", ""},
		"to another command":           {"GET", false, refused, refused, ""},
		"as a value":                   {"EXEC", false, fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", len(refused), refused), fmt.Sprintf("*1\r\n$%d\r\n%s\r\n", len(refused), refused), ""},
		"a write to a master":          {"SET", false, refusedError, refusedError, ""},
		"a write to a replica":         {"SET", true, refusedError, readonlyError, ""},
		"a read from a replica":        {"GETRANGE", true, refusedError, refusedError, ""},
		"another error":                {"SET", true, "-NOAUTH no\r\n", "-NOAUTH no\r\n", ""},
		"a script's string":            {"EVAL", true, "+" + scriptRefused + "\r\n", "+" + scriptRefused + "\r\n", ""},
		"a subscription":               {"SUBSCRIBE", false, refusedError, "-NOPERM no\r\n", "NOPERM no"},
		"a subscriber's subscription":  {"SUBSCRIBE", false, inSubscriber + " only so\r\n", "-NOPERM no\r\n", "NOPERM no"},
		"a stranger's subscription":    {"SUBSCRIBE", false, "-NOAUTH no\r\n", "-NOAUTH no\r\n", "NOPERM no"},
	} {
		t.Run(name, func(t *testing.T) {
			e := serverEnd{master: m}
			e.exchanges.asked(sent{command: []string{c.command}, replica: c.replica, refused: c.refused})
			out, complete := e.exchanges.answered([]byte(c.from), e.amend)
			require.Equal(t, c.out, string(joined(out)))
			require.Len(t, complete, 1)
			require.Equal(t, strings.TrimPrefix(c.out, push), string(complete[0].Reply))
		})
	}
}

// Whatever comes in, no bytes are lost, and a reply remains a reply.
func FuzzAmend(f *testing.F) {
	m := Start(f, 1).Master(0)
	for _, seed := range []string{
		"*2\r\n-section (server) is not supported\r\n:1\r\n", "-section (server all) is not supported\r\n", "%1\r\n+role\r\n+master\r\n",
		">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "*1\r\n$11\r\nunsubscribe\r\n",
		"*1\r\n|1\r\n+a\r\n:1\r\n:2\r\n", "*-1\r\n", "*1\r\n*1\r\n*1\r\n", refusedError, "-" + scriptRefused + "\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, command := range []string{"GET", "INFO", "EXEC", "HELLO", "EVAL", "SET", "SUBSCRIBE"} {
			for _, cut := range []int{0, len(b) / 2} {
				e := serverEnd{master: m}
				e.exchanges.asked(sent{command: []string{command}, replica: true})
				one, _ := e.exchanges.answered(b[:cut], e.amend)
				two, _ := e.exchanges.answered(b[cut:], e.amend)
				out := joined(append(one, two...))
				if command == "GET" && !bytes.Equal(out, b) {
					t.Fatalf("%q became %q", b, out)
				}
				if replyLength(b) == len(b) && replyLength(out) != len(out) {
					t.Fatalf("%s: %q became %q", command, b, out)
				}
			}
		}
	})
}
