package run

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
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

// As JSON, all records have the same units, whatever the library adds to them.
func TestPrinterOfJSON(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "a\x1b[2J<key>", output{verbose: true, format: "json"})
	p.live = true
	at := time.Date(2026, 11, 23, 12, 0, 0, 5, time.FixedZone("", 3600))
	p.note("test", "a\nnote", slog.Duration("left", 1500*time.Millisecond), slog.Time("until", at))
	p.warn("test", "a warning", slog.Any("error", fmt.Errorf("redlock: dial redis://u:s3cret@h\n%w", io.EOF)))
	p.eraseNote()
	p.logger().Info("redlock: something new", "event", "news", "key", "shortened", "late", 2*time.Second,
		"at", at, "nodes", []string{"a", "b"}, "err", io.EOF, slog.Group("round", "took", time.Minute))
	assert.Equal(t, &cli.ExitError{Code: cli.ExitLost}, p.fail(&cli.ExitError{Code: cli.ExitLost, Err: &lostError{"key", io.EOF, at}}))
	assert.Equal(t, &cli.ExitError{Code: cli.ExitUsage}, p.fail(cli.Usagef("--nodes: URL 1")))
	assert.Equal(t, &cli.ExitError{Code: 5}, p.fail(&cli.ExitError{Code: 5}), "the command's own status is no error")
	require.NoError(t, p.fail(nil))
	p.close()
	key := `"key":"a\u001b[2J<key>"`
	want := []string{
		`{"level":"INFO","msg":"a note","event":"test",` + key + `,"left_seconds":1.5,"until":"2026-11-23T11:00:00.000000005Z"}`,
		`{"level":"WARN","msg":"a warning","event":"test",` + key + `,"error":"dial redis://...@h; EOF"}`,
		`{"level":"INFO","msg":"something new","event":"news","late_seconds":2,"at":"2026-11-23T11:00:00.000000005Z","nodes":["a","b"],"err":"EOF","round":{"took_seconds":60},` + key + `}`,
		`{"level":"ERROR","msg":"lock \"key\" was lost: EOF (validity ended 2026-11-23T11:00:00.000000Z)","event":"failed",` + key + `,"status":76,"error":"lock \"key\" was lost: EOF (validity ended 2026-11-23T11:00:00.000000Z)","until":"2026-11-23T11:00:00.000000005Z"}`,
		`{"level":"ERROR","msg":"--nodes: URL 1","event":"failed",` + key + `,"status":64,"error":"--nodes: URL 1"}`,
	}
	got := regexp.MustCompile(`"time":"20[^"]*Z",`).ReplaceAllString(out.String(), "")
	assert.Equal(t, want, strings.Split(strings.TrimSuffix(got, "\n"), "\n"))
}

// The library's records of no concern are not taken for the reason of a loss.
func TestPrinterExplainsALossByAWarning(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out, "key", output{format: "json"})
	p.logger().Warn("redlock: renewal failed, trying again", "event", "renewal_failed", "error", "no quorum")
	p.logger().Info("redlock: quarantine over", "event", "quarantine_over")
	p.explainLoss()
	p.close()
	assert.Equal(t, 1, strings.Count(out.String(), "\n"))
	assert.Contains(t, out.String(), `"level":"WARN","msg":"renewal failed, trying again","event":"renewal_failed","error":"no quorum","key":"key"}`)
}
