//go:build linux

package chaos

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// tally counts the events of each kind.
func tally(events []history.Event) map[history.Kind]int {
	n := map[history.Kind]int{}
	for _, e := range events {
		n[e.Kind]++
	}
	return n
}

// lost counts the locks that ended before they were released.
func lost(events []history.Event) (n int) {
	for _, l := range history.Locks(events) {
		if l.Ended < l.Releasing {
			n++
		}
	}
	return n
}

// broken returns how many violations there are, and of which rules.
func broken(violations []history.Violation) string {
	n := map[string]int{}
	for _, v := range violations {
		n[v.Rule]++
	}
	text := fmt.Sprintf("%d violations", len(violations))
	for i, rule := range slices.Sorted(maps.Keys(n)) {
		text += fmt.Sprintf("%s %s %d", [...]string{":", ","}[min(i, 1)], rule, n[rule])
	}
	return text
}

// grants returns how many locks were granted from one instant to another, and the longest time
// without a grant.
func grants(events []history.Event, from, to time.Duration) (n int, drought time.Duration) {
	last := from
	for _, e := range events {
		if e.Kind == history.Granted && from <= e.At && e.At < to {
			n++
			drought, last = max(drought, e.At-last), e.At
		}
	}
	return n, max(drought, to-last)
}

// report logs a line about what the clients did, and one about the faults.
func (s *storm) report(events []history.Event, violations []history.Violation) {
	n := tally(events)
	during, drought := grants(events, s.begun, s.over)
	s.Logf("%s storm, seed %d, %v, %d clients, %d masters: %d acquisitions tried, %d granted, %d of them in the storm "+
		"and at most %v without any, %d extended, %d not, %d renewals seen, %d released, %d lost or lapsed; %s",
		s.terms.name, s.seed, (s.over - s.begun).Round(time.Second), len(s.seats), len(s.masters),
		n[history.Asked], n[history.Granted], during, drought.Round(10*time.Millisecond),
		n[history.Extended], n[history.NotExtended],
		n[history.Renewed], n[history.Released], lost(events), broken(violations))
	total, parts := 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(s.struck)) {
		total += s.struck[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, s.struck[name]))
	}
	s.Logf("%d faults: %s", total, strings.Join(parts, ", "))
	if s.terms.amnesia {
		s.Logf("%d masters forgot what they had granted, and were back at once", forgetful(events))
	}
}

// forgetful counts how often a master forgot at once.
func forgetful(events []history.Event) (n int) {
	for _, e := range events {
		if e.Kind == history.Fault && e.Text == amnesia.name {
			n++
		}
	}
	return n
}

// near is how much time before and after a violation is shown. shown is how many violations
// are shown: the first is the one to understand.
const (
	near  = 100 * time.Millisecond
	shown = 3
)

// accuse shows what happened around the first violations, and where to find the rest.
func (f *field) accuse(events []history.Event, violations []history.Violation) {
	f.Helper()
	for _, v := range violations[:min(len(violations), shown)] {
		from := v.At
		for _, l := range v.Locks {
			from = min(from, l.Asked)
		}
		var story strings.Builder
		for _, e := range events {
			if from-near <= e.At && e.At <= v.At+near && (e.Key == "" || e.Key == v.Key) {
				fmt.Fprintln(&story, e)
			}
		}
		f.Errorf("%v\n%s", v, story.String())
	}
	if path, err := f.keep(events); err != nil {
		f.Error(err)
	} else {
		f.Logf("all events: %s", path)
	}
}

// keep writes the events to a file that outlives the test: in go test's directory for
// artifacts, if it has one, or in a temporary directory.
func (f *field) keep(events []history.Event) (path string, err error) {
	var lines strings.Builder
	encoder := json.NewEncoder(&lines)
	for _, e := range events {
		if err := encoder.Encode(e); err != nil {
			return "", err
		}
	}
	var dir string
	if kept := flag.Lookup("test.artifacts"); kept != nil && kept.Value.String() == "true" {
		dir = f.ArtifactDir()
	} else if dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "events.jsonl")
	return path, errors.Join(err, os.WriteFile(path, []byte(lines.String()), 0o600))
}

// expectWork fails a storm that proves nothing because no lock was granted or nothing failed
// in it.
func (s *storm) expectWork(events []history.Event) {
	s.Helper()
	granted, _ := grants(events, s.begun, s.over)
	assert.NotZero(s, granted, "nothing was granted during the storm")
	assert.NotEmpty(s, s.struck, "nothing failed during the storm")
	assert.Equal(s, s.terms.amnesia, forgetful(events) > 0, "masters that forgot at once")
	for _, l := range history.Locks(events) {
		if !assert.Equal(s, s.terms.fencing, l.Token != 0, "%v has token %d", l, l.Token) {
			break
		}
	}
}
