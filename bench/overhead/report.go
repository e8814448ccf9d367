package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// times is how many flocks a lock of a quorum may cost, besides the round trips.
const times = 3

// report prints medians with quartiles, and for each way to run a command under a lock whether
// it meets the goal.
func report(out io.Writer, subjects []*subject) error {
	var b strings.Builder
	flock, pings := named(subjects, locked), named(subjects, trips)
	fmt.Fprintf(&b, "%-33s %9s %19s %9s\n", "", "median", "quartiles", "× flock")
	for _, s := range subjects {
		fmt.Fprintf(&b, "%-33s %6s ms %16s ms %9.2f\n", s.name, ms(s.median()),
			ms(s.quantile(0.25))+"–"+ms(s.quantile(0.75)), float64(s.median())/float64(flock.median()))
	}
	bar := times*flock.median() + pings.median()
	fmt.Fprintf(&b, "\n%d × flock + %d round trips = %s ms\n", times, nodes, ms(bar))
	for _, name := range []string{quorate, withC} {
		s := named(subjects, name)
		if s == nil {
			continue
		}
		verdict := "below it"
		if s.median() >= bar {
			verdict = "NOT below it"
		}
		fmt.Fprintf(&b, "%s: %s ms, %s\n", name, ms(s.median()), verdict)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// named returns nil if there is no such subject.
func named(subjects []*subject, name string) *subject {
	for _, s := range subjects {
		if s.name == name {
			return s
		}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1e3) }
