package timeline

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// line is one line of the text: a mark, and columns.
type line struct {
	at                           time.Duration
	mark                         string
	who, what, lock, key, detail string
}

func (l *line) join(detail string) {
	if l.detail != "" {
		l.detail += "; "
	}
	l.detail += detail
}

// The marks of lines that must not be overlooked. They are characters, because a log has no
// colours.
const (
	faultMark     = " !"
	violationMark = ">>"
)

// Text writes the run for terminals and logs, with a line for each event. Everything that a
// node did at one instant for one lock is on one indented line, so that the clients' lines
// stand out from the votes.
func Text(w io.Writer, r Run) error {
	r = r.ordered()
	var b strings.Builder
	if r.Title != "" {
		fmt.Fprintln(&b, clean(r.Title))
	}
	if r.Command != "" {
		fmt.Fprintln(&b, "replay: "+clean(r.Command))
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	if lines := lines(r); len(lines) > 0 {
		writeTable(&b, lines)
		b.WriteByte('\n')
	}
	b.WriteString(verdict(r) + "\n")
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%s %s ms  %s\n", violationMark, millis(v.At), warningText(v))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lines returns the lines in the order of time. A violation comes after the events at the
// instant when it could be seen; the end of a fault comes before them.
func lines(r Run) []line {
	t := teller{asked: map[lockID]time.Duration{}, held: map[lockID]time.Duration{}, releasing: map[lockID]time.Duration{}}
	var over, list []line // over: ends of faults, in the order of time
	flush := func(before time.Duration) {
		for len(over) > 0 && over[0].at <= before {
			list, over = append(list, over[0]), over[1:]
		}
	}
	violations := r.Violations
	warn := func(before time.Duration) {
		for len(violations) > 0 && violations[0].At < before {
			v := violations[0]
			flush(v.At)
			list, violations = append(list, warningLine(v)), violations[1:]
		}
	}
	var last history.Event
	for i, e := range r.Events {
		warn(e.At)
		flush(e.At)
		if i > 0 && sameVisit(last, e) && len(list) > 0 && list[len(list)-1].at == e.At {
			list[len(list)-1].join(t.nodeDetail(e))
		} else {
			list = append(list, t.line(e))
		}
		last = e
		if e.Kind == history.Fault && e.Until > e.At && e.Until <= r.End {
			end := line{at: e.Until, mark: faultMark, who: who(e), what: "fault over", detail: faultText(e)}
			at := len(over)
			for at > 0 && over[at-1].at > end.at {
				at--
			}
			over = append(over[:at], append([]line{end}, over[at:]...)...)
		}
	}
	warn(history.Never)
	flush(history.Never)
	return list
}

// sameVisit reports whether a and b belong to one command of one lock on one node, at one
// instant.
func sameVisit(a, b history.Event) bool {
	return ofNode(a) && ofNode(b) && a.At == b.At && a.Node == b.Node && a.Client == b.Client && a.Op == b.Op &&
		(a.Key == b.Key || a.Key == "" || b.Key == "") && (a.Kind != b.Kind)
}

func ofNode(e history.Event) bool {
	return e.Kind == history.Voted || e.Kind == history.Stored || e.Kind == history.Removed
}

func warningLine(v history.Violation) line {
	l := line{at: v.At, mark: violationMark, what: "VIOLATION", key: keyText(v.Key), detail: warningText(v)}
	var names []string
	for _, lock := range v.Locks {
		names = append(names, lockName(lock.Client, lock.Op))
	}
	l.lock = strings.Join(names, "+")
	return l
}

// keyText quotes a key that could be mistaken for something else.
func keyText(key string) string {
	if c := clean(key); c != key || strings.ContainsAny(key, " \"") {
		return fmt.Sprintf("%q", key)
	}
	return key
}

func writeTable(b *strings.Builder, lines []line) {
	rows := [][]string{{"  ", "ms", "who", "what", "lock", "key", "details"}}
	for _, l := range lines {
		mark := l.mark
		if mark == "" {
			mark = "  "
		}
		rows = append(rows, []string{mark, millis(l.at), l.who, l.what, l.lock, l.key, l.detail})
	}
	const times, details = 1, 6
	widths := make([]int, details)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], min(40, utf8.RuneCountInString(row[i])))
		}
	}
	for _, row := range rows {
		var s strings.Builder
		for i, cell := range row {
			pad := ""
			if i < details {
				pad = strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell)))
			}
			if i == times {
				s.WriteString(pad + cell + "  ")
			} else {
				s.WriteString(cell + pad + "  ")
			}
		}
		b.WriteString(strings.TrimRight(s.String(), " ") + "\n")
	}
}
