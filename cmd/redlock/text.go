package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/plain"
)

// text presents a demo to a person.
type text struct {
	w io.Writer
	painter
}

func (t text) open(intro string) error {
	_, err := io.WriteString(t.w, wrap(intro, ""))
	return err
}

func (t text) step(s *step) error {
	var b strings.Builder
	b.WriteString("\n" + t.paint(bold, fmt.Sprintf("%d. %s", s.Number, s.Title)) + "\n")
	for i, r := range s.Rounds {
		// The first round is what the step is about; what follows from it is
		// told in a line.
		if i == 0 && r.ballot != nil {
			b.WriteString(votes(r.Votes).show(t.painter))
		}
		if r.Client != s.Rounds[0].Client {
			b.WriteString(indent + r.Client + ":\n")
		}
		b.WriteString(t.summary(r))
		if r.Error != "" && (r.Result != "held" || strings.Contains(r.Error, "quarantined")) {
			b.WriteString(indent + "The error that a program gets:\n" + quote(r.Error))
		}
		if r.Token > 0 && r.Op == "acquire" {
			fmt.Fprintf(&b, indent+"%s's fencing token: %d\n", r.Client, r.Token)
		}
	}
	for _, w := range s.Writes {
		b.WriteString(t.written(w))
	}
	if s.Note != "" {
		b.WriteString(wrap(s.Note, indent))
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t text) close(steps int) error {
	_, err := fmt.Fprintf(t.w, "\n%s\n", t.paint(green, fmt.Sprintf("All %d steps went as they should.", steps)))
	return err
}

// summary is what came of a round, and its times.
func (t text) summary(r round) string {
	var b strings.Builder
	b.WriteString(indent + t.verdict(r))
	switch {
	case r.Cleared > 0:
		fmt.Fprintf(&b, ", no key is left on %d masters", r.Cleared)
	case r.ballot == nil:
		b.WriteString(", though not every master has answered")
	case r.Result == "granted":
		fmt.Fprintf(&b, ", %d of %d granted", r.Granted, len(r.Votes))
	case r.Result == "no quorum":
		fmt.Fprintf(&b, " (%d of %d)", r.Granted, len(r.Votes))
	}
	b.WriteString(": elapsed " + span(r.Elapsed))
	if r.worth != nil {
		b.WriteString(", drift " + span(r.Drift) + ", ")
		if r.Validity > 0 {
			b.WriteString("validity " + span(r.Validity))
		} else {
			b.WriteString("no validity")
		}
	}
	return b.String() + "\n"
}

// written is what became of a write.
func (t text) written(w write) string {
	verdict := t.paint(green, "taken")
	if w.Error != "" {
		verdict = t.paint(red, "refused") + "\n" + strings.TrimRight(wrap(w.Error, indent+indent), "\n")
	}
	return fmt.Sprintf("%s%s writes %q with its token: %s\n", indent, w.Client, w.Value, verdict)
}

var done = map[string]string{"acquire": "acquired", "extend": "extended", "release": "released"}

func (t text) verdict(r round) string {
	switch r.Result {
	case "granted":
		return t.paint(green, capital(done[r.Op]))
	case "held":
		return t.paint(yellow, "Refused, the lock is held")
	}
	return t.paint(red, "Not "+done[r.Op]+", "+r.Result)
}

// quote is an error as a program gets it, a line for each node. Only spaces
// become line breaks.
func quote(message string) string {
	message = strings.ReplaceAll(plain.Printable(message), "; ", ";\n")
	message = strings.Replace(message, " needed: ", " needed:\n", 1)
	return wrap(message, indent+indent)
}

// maxAddr is how much of a node's address a table of votes shows.
const maxAddr = 30

// votes lists who voted, how fast, and what each said.
func votes(all []vote) table {
	t := table{indent: indent + indent, columns: []tableColumn{{head: "vote"}, {head: "latency", right: true}}, text: "said"}
	for _, v := range all {
		t.rows = append(t.rows, tableRow{cut(v.Addr, maxAddr), []tableCell{{v.Vote, voteColour(v.Vote)}, {text: millis(v.Latency)}}, v.brief})
	}
	return t
}

func voteColour(vote string) colour {
	switch vote {
	case "granted":
		return green
	case "failed":
		return red
	}
	return yellow
}

// millis is a duration in one unit, so that a column of them can be compared.
func millis(d micros) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// span is a duration in a sentence.
func span(d micros) string {
	switch {
	case time.Duration(d) < 10*time.Millisecond:
		return millis(d)
	case time.Duration(d) < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	seconds := fmt.Sprintf("%.3f", float64(d)/float64(time.Second))
	return strings.TrimRight(strings.TrimRight(seconds, "0"), ".") + " s"
}
