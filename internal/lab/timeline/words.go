package timeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// millis formats a time in milliseconds, to the microsecond.
func millis(t time.Duration) string {
	if t == history.Never {
		return "never"
	}
	return strconv.FormatFloat(float64(t)/float64(time.Millisecond), 'f', 3, 64)
}

// clean makes s fit for one line of a terminal: a key or an error must not move the cursor.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// short cuts s to at most n characters.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n < 2 {
		return ""
	}
	return strings.TrimRight(string(r[:n-1]), " ") + "…"
}

// lockName names a client's lock, so that one search finds all its events.
func lockName(client, op int) string {
	switch {
	case client < 1 && op < 1:
		return ""
	case op < 1:
		return fmt.Sprintf("c%d", client)
	}
	return fmt.Sprintf("c%d#%d", client, op)
}

// verdict returns the result of the run in one line.
func verdict(r Run) string {
	switch n := len(r.Violations); {
	case r.Verdict != "":
		return clean(r.Verdict)
	case n == 0:
		return "no violation"
	case n == 1:
		return "1 violation"
	default:
		return fmt.Sprintf("%d violations", n)
	}
}

// faultText returns the name of a fault.
func faultText(e history.Event) string {
	s := clean(e.Text)
	if s == "" {
		s = clean(e.Err)
	}
	if s == "" {
		s = "fault"
	}
	return s
}
