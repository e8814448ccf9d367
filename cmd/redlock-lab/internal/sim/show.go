package sim

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/sim"
	"github.com/quorumlock/redlock/internal/lab/timeline"
	"github.com/quorumlock/redlock/internal/plain"
)

// show shows the timeline of a seed.
func (f *flags) show(cmd *cobra.Command, r sim.Result) error {
	run := picture(r, f.exact)
	if f.html+f.svg != "" {
		run = working(run, r.Calm)
	}
	return f.draw(cmd, run)
}

// draw writes the timeline to the requested files. If there are none, it prints it.
func (f *flags) draw(cmd *cobra.Command, run timeline.Run) error {
	if f.html+f.svg == "" {
		if f.quiet {
			return nil
		}
		return timeline.Text(cmd.OutOrStdout(), run)
	}
	for _, drawn := range []struct {
		what, file string
		as         func(io.Writer, timeline.Run) error
	}{{"page", f.html, timeline.HTML}, {"picture", f.svg, timeline.SVG}} {
		if drawn.file == "" {
			continue
		}
		var content bytes.Buffer
		if err := drawn.as(&content, run); err != nil {
			return err
		}
		if err := os.WriteFile(drawn.file, content.Bytes(), 0o666); err != nil {
			return fmt.Errorf("cannot write the %s: %w", drawn.what, err)
		}
		if !f.quiet {
			cmd.Printf("The timeline is in %s, a %s for a browser.\n", plain.Printable(drawn.file), drawn.what)
		}
	}
	return nil
}

// verdict counts the violations of Redlock's promises. It counts violations of what Redlock does
// not promise separately, with the faults that explain them.
func verdict(r sim.Result) string {
	if len(r.Excused) == 0 {
		return violations(len(r.Violations))
	}
	excused := map[sim.Kind]int{}
	for _, e := range r.Excused {
		excused[e.Kind]++
	}
	var under []string
	for _, kind := range slices.Sorted(maps.Keys(excused)) {
		under = append(under, fmt.Sprintf("%s %d", kind, excused[kind]))
	}
	return fmt.Sprintf("%s of what Redlock promises, and %d of what it does not (%s)", violations(len(r.Violations)), len(r.Excused), strings.Join(under, ", "))
}

// violations counts violations in words.
func violations(n int) string {
	switch n {
	case 0:
		return "no violation"
	case 1:
		return "1 violation"
	}
	return fmt.Sprintf("%d violations", n)
}

// working leaves out the events after all work is done, unless something went wrong there. They
// last a minute or more, and would squeeze the rest of a picture into a line.
func working(run timeline.Run, calm time.Duration) timeline.Run {
	for _, v := range run.Violations {
		if v.At > calm {
			return run
		}
	}
	run.Events = slices.DeleteFunc(slices.Clone(run.Events), func(e history.Event) bool { return e.At > calm })
	run.End = calm + time.Millisecond
	return run
}

func picture(r sim.Result, exactly bool) timeline.Run {
	run := timeline.Run{
		Title: fmt.Sprintf("seed %d: %d masters, %d clients, faults for %v", r.Plan.Config.Seed, r.Plan.Nodes, len(r.Plan.Clients), r.Plan.For),
		Nodes: r.Plan.Nodes, Clients: len(r.Plan.Clients), End: time.Millisecond,
		Command: command(r.Plan.Config, exactly),
		Events:  r.Events, Violations: r.Violations, Verdict: verdict(r),
	}
	if n := len(r.Events); n > 0 {
		run.End += r.Events[n-1].At // only waiting follows
	}
	for _, e := range r.Excused {
		v := e.Violation
		v.Text += fmt.Sprintf(" (not promised under %s)", e.Kind)
		run.Violations = append(run.Violations, v)
	}
	return run
}
