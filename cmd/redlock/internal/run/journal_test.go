package run

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/internal/terminal"
)

// A lock must be released in time even if nobody reads the messages about it.
func TestNobodyWaitsForTheJournal(t *testing.T) {
	r, w := io.Pipe()
	j := newJournal(w, false, false)
	for i := range 10_000 {
		j.warn("line %d", i)
	}
	_ = r.Close()
	j.close()
}

func TestJournalWritesAllThatFits(t *testing.T) {
	var out bytes.Buffer
	j := newJournal(&out, false, false)
	for i := range 100 {
		j.warn("line\n%d", i)
		j.tell("not told")
	}
	j.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.Len(t, lines, 100)
	for i, line := range lines {
		assert.Equal(t, fmt.Sprintf("redlock: line %d", i), line)
	}
	newJournal(&out, false, false).close() // without any message
}

func TestJournalOnATerminal(t *testing.T) {
	var out bytes.Buffer
	j := newJournal(&out, false, false)
	j.live = true
	j.say("waiting", true)
	j.warn("news")
	j.say(strings.Repeat("long ", 30), true)
	j.close()
	const erase = "\r\x1b[K"
	first, rest, _ := strings.Cut(out.String(), "\n")
	assert.Equal(t, erase+"redlock: waiting"+erase+"redlock: news", first)
	notes := strings.Split(rest, erase)
	assert.Equal(t, "redlock: waiting", notes[0], "it stands below the news")
	assert.Len(t, []rune(notes[1]), terminal.Columns-1)
	assert.Equal(t, "", notes[2], "and is gone in the end")
}

func TestQuietJournal(t *testing.T) {
	var out bytes.Buffer
	j := newJournal(&out, false, true)
	j.warn("a warning")
	j.tell("news")
	j.logger().Warn("library")
	j.close()
	assert.Empty(t, out.String())
}

// The library's messages are shown with -v, or if they explain why a lock is lost.
func TestJournalOfTheLibrary(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		j := newJournal(&out, verbose, false)
		j.logger().Warn("redlock: renewal failed, trying again", slog.String("key", "k"),
			slog.Time("until", time.UnixMilli(1500)), slog.String("error", "redlock: no quorum"))
		j.logger().Debug("details")
		j.warn("then")
		j.because()
		j.close()
		said := "redlock: renewal failed, trying again: until 1970-01-01T00:00:01.500Z, no quorum\n"
		if verbose {
			assert.Equal(t, said+"redlock: then\n", out.String())
		} else {
			assert.Equal(t, "redlock: then\n"+said, out.String())
		}
	}
}
