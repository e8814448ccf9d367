package timeline

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

func written(t *testing.T, r Run) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Text(&b, r))
	return b.String()
}

func TestTextTellsAStory(t *testing.T) {
	r := Run{
		Title: "seed 1: 3 masters, 2 clients, 1 s", Command: "redlock simulate --seed 1", Nodes: 3, Clients: 2, End: time.Second,
		Events: []history.Event{
			{At: 1 * ms, Kind: history.Asked, Client: 1, Op: 1, Key: "a"},
			{At: 2 * ms, Kind: history.Voted, Client: 1, Op: 1, Key: "a", Node: 1, Text: "granted"},
			{At: 2 * ms, Kind: history.Stored, Client: 1, Op: 1, Key: "a", Node: 1, Until: 302 * ms},
			{At: 2500 * time.Microsecond, Kind: history.Voted, Client: 1, Op: 1, Key: "a", Node: 2, Text: "refused"},
			{At: 3 * ms, Kind: history.Voted, Client: 1, Op: 1, Key: "a", Node: 3, Text: "failed", Err: "connection refused"},
			{At: 4 * ms, Kind: history.Granted, Client: 1, Op: 1, Key: "a", Until: 300 * ms},
			{At: 5 * ms, Kind: history.Fault, Node: 3, Text: "crashed", Until: 100 * ms},
			{At: 6 * ms, Kind: history.Fault, Client: 2, Node: 1, Text: "replies lost", Until: 2 * time.Second},
			{At: 10 * ms, Kind: history.Paused, Client: 1},
			{At: 90 * ms, Kind: history.Resumed, Client: 1},
			{At: 110 * ms, Kind: history.Asked, Client: 2, Op: 1, Key: "a"},
			{At: 120 * ms, Kind: history.Granted, Client: 2, Op: 1, Key: "a", Until: 400 * ms},
			{At: 130 * ms, Kind: history.Extended, Client: 2, Op: 1, Key: "a", Until: 500 * ms},
			{At: 150 * ms, Kind: history.Releasing, Client: 1, Op: 1, Key: "a", Until: 300 * ms},
			{At: 151 * ms, Kind: history.Removed, Client: 1, Op: 1, Key: "a", Node: 1},
			{At: 152 * ms, Kind: history.Released, Client: 1, Op: 1, Key: "a", Err: "1 of 3"},
			{At: 200 * ms, Kind: history.Asked, Client: 1, Op: 2, Key: "two words"},
			{At: 250 * ms, Kind: history.Denied, Client: 1, Op: 2, Key: "two words", Err: "line\nbreak"},
			{At: 300 * ms, Kind: history.Died, Client: 2},
		},
		Violations: []history.Violation{{
			At: 120 * ms, Rule: history.Exclusion, Key: "a", Text: "two holders",
			Locks: []history.Lock{{Client: 1, Op: 1}, {Client: 2, Op: 1}},
		}},
	}
	require.Equal(t, strings.TrimPrefix(`
seed 1: 3 masters, 2 clients, 1 s
replay: redlock simulate --seed 1

         ms  who    what        lock       key          details
      1.000  c1     asked       c1#1       a
      2.000    n1     granted   c1#1       a            stored until 302.000
      2.500    n2     refused   c1#1       a
      3.000    n3     failed    c1#1       a            connection refused
      4.000  c1     granted     c1#1       a            after 3.000, valid until 300.000
 !    5.000  n3     FAULT                               crashed, until 100.000
 !    6.000  c2-n1  FAULT                               replies lost, until 2000.000
 !   10.000  c1     paused
 !   90.000  c1     resumed
 !  100.000  n3     fault over                          crashed
    110.000  c2     asked       c2#1       a
    120.000  c2     granted     c2#1       a            after 10.000, valid until 400.000
>>  120.000         VIOLATION   c1#1+c2#1  a            exclusion: two holders
    130.000  c2     extended    c2#1       a            valid until 500.000
    150.000  c1     releasing   c1#1       a            held for 146.000, was valid until 300.000
    151.000    n1     removed   c1#1       a
    152.000  c1     released    c1#1       a            after 2.000: 1 of 3
    200.000  c1     asked       c1#2       "two words"
    250.000  c1     denied      c1#2       "two words"  after 50.000: line break
 !  300.000  c2     died

1 violation
>> 120.000 ms  exclusion: two holders
`, "\n"), written(t, r))
}

func TestTextOfAnEmptyRun(t *testing.T) {
	require.Equal(t, "no violation\n", written(t, Run{}))
}

func TestTextDoesNotDependOnTheOrderOfItsEvents(t *testing.T) {
	r := newSample(3, 3, 2, 500*ms, "a")
	want := written(t, r)
	first := r.Events[0]
	r.Events = append(r.Events[1:], first)
	require.Equal(t, want, written(t, r))
	require.Equal(t, first, r.Events[len(r.Events)-1], "the caller's events stay as they are")
}

func TestTextKeepsTheTerminalSafe(t *testing.T) {
	s := written(t, Run{Title: "a\x1b[2Jb", Command: "x\ny", Events: []history.Event{
		{Kind: history.Asked, Client: 1, Op: 1, Key: "\x1b]0;k\x07\xff"}, {Kind: history.Fault, Text: "\x9b31m\r"},
	}})
	for _, r := range s {
		require.False(t, r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0), "%q", s)
	}
}

func TestVotesAreRead(t *testing.T) {
	for text, want := range map[string]vote{
		"granted": granted, "OK": granted, "acquire: granted": granted, "1": granted, "": granted,
		"refused": refused, "nil": refused, "0": refused, "release: -250": refused, "acquire: refused, held by c2#1": refused,
		"failed": failed, "ERR no space": failed, "lost": failed,
	} {
		require.Equal(t, want, voteOf(history.Event{Text: text}), text)
	}
	require.Equal(t, failed, voteOf(history.Event{Text: "granted", Err: "no answer in time"}))
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestErrorsOfTheWriterAreReturned(t *testing.T) {
	require.ErrorIs(t, Text(brokenWriter{}, Run{}), errBroken)
	require.ErrorIs(t, SVG(brokenWriter{}, Run{}), errBroken)
	require.ErrorIs(t, HTML(brokenWriter{}, Run{}), errBroken)
}
