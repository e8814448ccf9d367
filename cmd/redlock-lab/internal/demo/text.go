package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
)

// text shows a demo to a person.
type text struct {
	w io.Writer
	terminal.Painter
}

func (t text) open(intro string) error {
	_, err := io.WriteString(t.w, terminal.Wrap(intro, ""))
	return err
}

func (t text) step(s *step) error {
	var b strings.Builder
	b.WriteString("\n" + t.Paint(terminal.Bold, fmt.Sprintf("%d. %s", s.Number, s.Title)) + "\n")
	for i, r := range s.Rounds {
		// The first round is the subject of the step. The rounds that follow get one line each.
		if i == 0 && r.ballot != nil {
			b.WriteString(votes(r.Votes).Show(t.Painter))
		}
		if r.Client != s.Rounds[0].Client {
			b.WriteString(terminal.Indent + r.Client + ":\n")
		}
		b.WriteString(t.summary(r))
		if r.Error != "" && (r.Result != "held" || strings.Contains(r.Error, "quarantined")) {
			b.WriteString(terminal.Indent + "The error that a program gets:\n" + quote(r.Error))
		}
		if r.Token > 0 && r.Op == "acquire" {
			fmt.Fprintf(&b, terminal.Indent+"%s's fencing token: %d\n", r.Client, r.Token)
		}
	}
	for _, w := range s.Writes {
		b.WriteString(t.written(w))
	}
	if s.Note != "" {
		b.WriteString(terminal.Wrap(s.Note, terminal.Indent))
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t text) close(steps int) error {
	_, err := fmt.Fprintf(t.w, "\n%s\n", t.Paint(terminal.Green, fmt.Sprintf("All %d steps went as they should.", steps)))
	return err
}

// summary describes the result of a round, and its times.
func (t text) summary(r round) string {
	var b strings.Builder
	b.WriteString(terminal.Indent + t.verdict(r))
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

// written describes the result of a write.
func (t text) written(w write) string {
	verdict := t.Paint(terminal.Green, "taken")
	if w.Error != "" {
		verdict = t.Paint(terminal.Red, "refused") + "\n" + strings.TrimRight(terminal.Wrap(w.Error, terminal.Indent+terminal.Indent), "\n")
	}
	return fmt.Sprintf("%s%s writes %q with its token: %s\n", terminal.Indent, w.Client, w.Value, verdict)
}

var done = map[string]string{"acquire": "acquired", "extend": "extended", "release": "released"}

func (t text) verdict(r round) string {
	switch r.Result {
	case "granted":
		return t.Paint(terminal.Green, terminal.Capital(done[r.Op]))
	case "held":
		return t.Paint(terminal.Yellow, "Refused, the lock is held")
	}
	return t.Paint(terminal.Red, "Not "+done[r.Op]+", "+r.Result)
}

// quote formats an error as a program gets it, with a line for each node. Only spaces become line
// breaks.
func quote(message string) string {
	message = strings.ReplaceAll(plain.Printable(message), "; ", ";\n")
	message = strings.Replace(message, " needed: ", " needed:\n", 1)
	return terminal.Wrap(message, terminal.Indent+terminal.Indent)
}

// maxAddr is how much of a node's address a table of votes shows.
const maxAddr = 30

// votes returns a table of the nodes' votes, latencies and answers.
func votes(all []vote) terminal.Table {
	t := terminal.Table{Indent: terminal.Indent + terminal.Indent, Columns: []terminal.Column{{Head: "vote"}, {Head: "latency", Right: true}}, Text: "said"}
	for _, v := range all {
		t.Rows = append(t.Rows, terminal.Row{Name: terminal.Cut(v.Addr, maxAddr), Cells: []terminal.Cell{{Text: v.Vote, Tint: voteColour(v.Vote)}, {Text: millis(v.Latency)}}, Text: v.brief})
	}
	return t
}

func voteColour(vote string) terminal.Colour {
	switch vote {
	case "granted":
		return terminal.Green
	case "failed":
		return terminal.Red
	}
	return terminal.Yellow
}

// millis formats a duration in one unit, so that a column of durations can be compared.
func millis(d cli.Micros) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// span formats a duration for a sentence.
func span(d cli.Micros) string {
	switch {
	case time.Duration(d) < 10*time.Millisecond:
		return millis(d)
	case time.Duration(d) < time.Second:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	seconds := fmt.Sprintf("%.3f", float64(d)/float64(time.Second))
	return strings.TrimRight(strings.TrimRight(seconds, "0"), ".") + " s"
}
