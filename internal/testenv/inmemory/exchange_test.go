package inmemory

import (
	"bytes"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func asItIs(_ sent, reply []byte) []byte { return reply }

func joined(pieces []piece) (all []byte) {
	for _, p := range pieces {
		all = append(all, p.raw...)
	}
	return all
}

// A published message may come at any time, in any pieces, and answers no command.
func TestExchangesLeaveOutPublishedMessages(t *testing.T) {
	const message = "\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"
	for name, c := range map[string]struct {
		before  string
		command []string
		after   string
		want    string
	}{
		"before the command, RESP3":            {">3" + message, []string{"GET", "key"}, "$1\r\nv\r\n", "$1\r\nv\r\n"},
		"before the command, RESP2":            {"*3" + message, []string{"QUIT"}, "+OK\r\n", "+OK\r\n"},
		"between the command and its reply":    {"", []string{"GET", "key"}, ">3" + message + "$1\r\nv\r\n", "$1\r\nv\r\n"},
		"before a subscription is confirmed":   {"", []string{"SUBSCRIBE", "b"}, ">3" + message + ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"},
		"a subscription that fails":            {"", []string{"SUBSCRIBE"}, "-ERR wrong\r\n", "-ERR wrong\r\n"},
		"an attribute is part of what follows": {"", []string{"GET", "key"}, "|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n", "|1\r\n+ttl\r\n:3\r\n$1\r\nv\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var e exchanges
			out, got := e.answered([]byte(c.before), asItIs)
			require.Empty(t, got)
			e.asked(sent{command: c.command})
			for _, b := range []byte(c.after) {
				on, complete := e.answered([]byte{b}, asItIs)
				out, got = append(out, on...), append(got, complete...)
			}
			require.Equal(t, []Exchange{{Command: c.command, Reply: []byte(c.want)}}, got)
			require.Equal(t, c.before+c.after, string(joined(out)), "sent on")
		})
	}
}

// A published message is a separate piece, so that it can be lost alone. The rest stays
// together.
func TestExchangesSetMessagesApart(t *testing.T) {
	const one, two = "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", ">4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$1\r\nb\r\n"
	const confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
	var e exchanges
	e.asked(sent{command: []string{"SUBSCRIBE", "a", "b"}})
	pieces, _ := e.answered([]byte(confirmed+one+two+"+PO"), asItIs)
	require.Equal(t, []piece{{[]byte(confirmed), false}, {[]byte(one), true}, {[]byte(two), true}, {[]byte("+PO"), false}}, pieces)
	require.Equal(t, int32(2), e.subscriptions.Load())
	pieces, _ = e.answered([]byte("NG\r\n"+one[:10]), asItIs)
	require.Equal(t, []piece{{[]byte("NG\r\n" + one[:10]), false}}, pieces)
	pieces, _ = e.answered([]byte(one[10:]+one), asItIs)
	require.Equal(t, []piece{{[]byte(one[10:]), false}, {[]byte(one), true}}, pieces, "its beginning is gone")
}

// Neither a stack nor a length overflows, whatever a server sends.
func TestReplyLengthBearsDepthAndLargeNumbers(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	deep := bytes.Repeat([]byte("*1\r\n"), 1_000_000)
	require.Zero(t, replyLength(deep))
	require.Len(t, deep, replyLength(append(deep, "+OK\r\n"...))-len("+OK\r\n"))
	for _, huge := range []string{"9223372036854775807", "99999999999999999999", "4611686018427387905", "-9223372036854775808"} {
		for _, kind := range "$=!*~>%|" {
			require.LessOrEqual(t, replyLength([]byte(string(kind)+huge+"\r\n\r\n")), len(huge)+3)
		}
	}
}

// The length of a reply does not depend on what follows it.
func FuzzReplyLength(f *testing.F) {
	for _, seed := range []string{
		"", "+OK\r\n", "-ERR\r\n+OK\r\n", "$5\r\nhello\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "*2\r\n*0\r\n%1\r\n+a\r\n$1\r\nb\r\n",
		">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n", "|1\r\n+a\r\n:1\r\n:2\r\n", "$9223372036854775807\r\n", "*1\r\n*1\r\n*1\r\n", "\r\n",
		"*1\r\n$0\r\n\r\n", ">1\r\n:1\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := replyLength(b)
		if n < 0 || n > len(b) {
			t.Fatalf("%d of %d bytes", n, len(b))
		}
		if n > 0 && (replyLength(b[:n]) != n || replyLength(b[:n-1]) != 0) {
			t.Fatalf("%q is not one reply", b[:n])
		}
		for _, command := range []string{"GET", "SUBSCRIBE", "UNSUBSCRIBE", "PING"} {
			var e exchanges
			e.asked(sent{command: []string{command}})
			e.answered(b, asItIs)
		}
	})
}
