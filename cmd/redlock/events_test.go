//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/session"
)

// documented is a row of a table of events in docs/command.md.
type documented struct {
	level      string
	attributes []string
}

var (
	eventRow  = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([A-Z]+) \\|([^|]*)\\|[^|]*\\|$")
	inTicks   = regexp.MustCompile("`([a-z_]+)`")
	everyLine = []string{"time", "level", "msg", "event", "key"}
)

func documentedEvents() (map[string]documented, error) {
	page, err := os.ReadFile(commandPage)
	if err != nil {
		return nil, err
	}
	events := map[string]documented{}
	for _, row := range eventRow.FindAllStringSubmatch(string(page), -1) {
		d := documented{level: row[2]}
		for _, name := range inTicks.FindAllStringSubmatch(row[3], -1) {
			d.attributes = append(d.attributes, name[1])
		}
		if _, twice := events[row[1]]; twice {
			return nil, fmt.Errorf("%s is there twice", row[1])
		}
		events[row[1]] = d
	}
	return events, nil
}

// sources returns the text of the files that match, without tests.
func sources(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				all.Write(text)
			}
		}
	}
	return all.String()
}

// The page has each event that the code can emit, with its level, and no other. It has each
// attribute that the code can give an event, and no other.
func TestCommandPageHasEachEvent(t *testing.T) {
	page, err := documentedEvents()
	require.NoError(t, err)
	want := map[string]string{}

	run := sources(t, "internal/run/*.go")
	levels := map[string]string{}
	for method, level := range map[string]string{"tell": "INFO", "note": "INFO", "warn": "WARN"} {
		for _, m := range regexp.MustCompile(`\bp\.`+method+`\((\w*)`).FindAllStringSubmatch(run, -1) {
			assert.Regexp(t, "^event[A-Z]", m[1], "%s has no constant", m[0])
			levels[m[1]] = level
		}
	}
	for _, m := range regexp.MustCompile(`\bp\.message\(slog\.LevelError, (event\w+)`).FindAllStringSubmatch(run, -1) {
		levels[m[1]] = "ERROR"
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(event\w+) +event = "(\w+)"`).FindAllStringSubmatch(run, -1) {
		assert.NotEmpty(t, levels[m[1]], "nothing emits %s", m[1])
		want[m[2]] = levels[m[1]]
	}

	library := sources(t, "../../redlock/*.go", "../../redlock/internal/*/*.go")
	for _, m := range regexp.MustCompile(`\b[lL]og\.(Warn|Info)\("(\w+)"`).FindAllStringSubmatch(library, -1) {
		if m[2] != "observer_panicked" { // the command has no Observer
			want[m[2]] = strings.ToUpper(m[1])
		}
	}
	assert.Contains(t, want, "failed")
	assert.Contains(t, want, "lock_lost")

	got := map[string]string{}
	documented := map[string]bool{}
	for name, d := range page {
		got[name] = d.level
		for _, attribute := range d.attributes {
			documented[attribute] = true
		}
	}
	assert.Equal(t, want, got)

	given := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bslog\.(\w+)\("(\w+)"`).FindAllStringSubmatch(run, -1) {
		if m[1] == "Duration" {
			m[2] += "_seconds"
		}
		given[m[2]] = !slices.Contains(everyLine, m[2])
	}
	for name, may := range given {
		assert.Equal(t, may, documented[name], "the attribute %s", name)
	}
}

// logged checks that each line of a file is a record as docs/command.md describes it.
func logged(s *session.Session, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: logged FILE")
	}
	records, err := objectsIn(s.ReadFile(args[0]))
	if err != nil {
		return err
	}
	page, err := documentedEvents()
	if err != nil {
		return err
	}
	for _, record := range records {
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(record["time"])); err != nil || at.Location() != time.UTC {
			return fmt.Errorf("time %v: %w", record["time"], err)
		}
		d, ok := page[fmt.Sprint(record["event"])]
		if !ok || record["level"] != d.level || record["msg"] == "" || record["key"] == nil {
			return fmt.Errorf("%v is not in %s", record, commandPage)
		}
		for name := range record {
			if !slices.Contains(everyLine, name) && !slices.Contains(d.attributes, name) {
				return fmt.Errorf("%s of %v is not in %s", name, record, commandPage)
			}
		}
	}
	return nil
}
