package timeline

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

type lockID struct{ client, op int }

// teller describes events in words. It remembers when things began, to report how long they
// took.
type teller struct {
	asked, held, releasing map[lockID]time.Duration
}

func (t teller) line(e history.Event) line {
	l := line{at: e.At, who: who(e), what: string(e.Kind), key: keyText(e.Key), lock: lockName(e.Client, e.Op)}
	switch {
	case e.Kind == history.Fault:
		l.mark, l.what, l.detail = faultMark, "FAULT", faultText(e)
		if e.Until > e.At {
			l.detail += ", until " + millis(e.Until)
		}
		l.lock = ""
	case ofNode(e):
		// The first word is the column "what".
		what, detail, _ := strings.Cut(t.nodeDetail(e), " ")
		l.what, l.detail = "  "+what, detail
	default:
		if e.Op < 1 {
			l.lock = "" // the client's name is enough
		}
		if e.Kind == history.Died || e.Kind == history.Closed || e.Kind == history.Paused || e.Kind == history.Resumed {
			l.mark = faultMark
		}
		l.detail = t.clientDetail(e)
	}
	return l
}

func who(e history.Event) string {
	switch {
	case ofNode(e):
		return fmt.Sprintf("  n%d", e.Node)
	case e.Client > 0 && e.Node > 0:
		return fmt.Sprintf("c%d-n%d", e.Client, e.Node)
	case e.Client > 0:
		return fmt.Sprintf("c%d", e.Client)
	case e.Node > 0:
		return fmt.Sprintf("n%d", e.Node)
	}
	return "all"
}

// nodeDetail begins with one word for what the node did. For a vote, that is how it voted.
func (t teller) nodeDetail(e history.Event) string {
	s, more := string(e.Kind), e.Text
	switch e.Kind {
	case history.Voted:
		s, more = string(voteOf(e)), plainVote(e)
	case history.Stored:
		if e.Until > e.At {
			s += " until " + millis(e.Until)
		}
	}
	if more == "" {
		return s
	}
	if s == string(e.Kind) || e.Kind == history.Voted {
		return s + " " + clean(more)
	}
	return s + ", " + clean(more)
}

// plainVote returns what a node said, without the word for its vote.
func plainVote(e history.Event) string {
	switch {
	case e.Text == "" || e.Text == string(voteOf(e)):
		return e.Err
	case e.Err == "":
		return e.Text
	}
	return e.Text + ": " + e.Err
}

func (t teller) clientDetail(e history.Event) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	since := func(what string, from map[lockID]time.Duration) {
		if begun, known := from[lockID{e.Client, e.Op}]; known {
			say(what, millis(e.At-begun))
		}
	}
	id := lockID{e.Client, e.Op}
	switch e.Kind {
	case history.Asked:
		t.asked[id] = e.At
	case history.Granted:
		since("after %s", t.asked)
		t.held[id] = e.At
	case history.Denied:
		since("after %s", t.asked)
	case history.Releasing:
		since("held for %s", t.held)
		t.releasing[id] = e.At
	case history.Released:
		since("after %s", t.releasing)
	}
	if e.Until > 0 {
		switch {
		case e.Kind == history.Releasing || e.Kind == history.Ended:
			say("was valid until %s", millis(e.Until))
		case e.Kind == history.Granted || e.Kind == history.Extended || e.Kind == history.Renewed:
			say("valid until %s", millis(e.Until))
		default:
			say("until %s", millis(e.Until))
		}
	}
	if e.Token > 0 && e.Kind == history.Granted {
		say("token %d", e.Token)
	}
	s := strings.Join(parts, ", ")
	for _, more := range []string{e.Text, e.Err} {
		if more != "" {
			s = strings.TrimPrefix(s+": "+clean(more), ": ")
		}
	}
	return s
}
