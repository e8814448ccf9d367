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
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/terminal"
)

// A lock must be released in time even if nobody reads the messages about it.
func TestNobodyWaitsForThePrinter(t *testing.T) {
	r, w := io.Pipe()
	p := newPrinter(w, "key", output{})
	for i := range 10_000 {
		p.warn("test", fmt.Sprintf("line %d", i))
	}
	_ = r.Close()
	p.close()
}

func TestPrinterWritesAllThatFits(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "key", output{})
	for i := range 100 {
		p.warn("test", fmt.Sprintf("line\n%d", i))
		p.tell("test", "an event")
	}
	p.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.Len(t, lines, 100)
	for i, line := range lines {
		assert.Equal(t, fmt.Sprintf("redlock: line %d", i), line)
	}
	newPrinter(&out, "key", output{}).close() // without any message
}

// A message that is queued when the printer is closed is written.
func TestPrinterWritesWhatIsQueuedAtTheEnd(t *testing.T) {
	for i := range 2_000 {
		var out bytes.Buffer
		p := newPrinter(&out, "key", output{})
		p.warn("test", "the last words")
		p.close()
		require.Equal(t, "redlock: the last words\n", out.String(), "printer %d", i)
	}
}

func TestPrinterOnATerminal(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "key", output{})
	p.live = true
	p.note("test", "waiting")
	p.warn("test", "a warning")
	p.note("test", strings.Repeat("long ", 30))
	p.close()
	const erase = "\r\x1b[K"
	first, rest, _ := strings.Cut(out.String(), "\n")
	assert.Equal(t, erase+"redlock: waiting"+erase+"redlock: a warning", first)
	notes := strings.Split(rest, erase)
	assert.Equal(t, "redlock: waiting", notes[0], "it is below the warning")
	assert.Len(t, []rune(notes[1]), terminal.Columns-1)
	assert.Equal(t, "", notes[2], "and is gone in the end")
}

func TestQuietPrinter(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "key", output{quiet: true})
	p.warn("test", "a warning")
	p.tell("test", "an event")
	p.logger().Warn("library")
	p.close()
	assert.Empty(t, out.String())
}

// The library's messages are shown with -v, or if they explain why a lock is lost.
func TestPrinterOfTheLibrary(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		p := newPrinter(&out, "key", output{verbose: verbose})
		p.logger().Warn("redlock: renewal failed, trying again", slog.String("event", "renewal_failed"), slog.String("key", "k"),
			slog.Time("until", time.UnixMilli(1500)), slog.Duration("held", 1234567*time.Microsecond),
			slog.String("cause", "no_quorum"), slog.String("error", "redlock: no quorum"))
		p.logger().Debug("details")
		p.warn("test", "then")
		p.explainLoss()
		p.close()
		said := "redlock: renewal failed, trying again: until 1970-01-01T00:00:01.500Z, held 1.235s, no quorum\n"
		if verbose {
			assert.Equal(t, said+"redlock: then\n", out.String())
		} else {
			assert.Equal(t, "redlock: then\n"+said, out.String())
		}
	}
}
