package timeline

import (
	"bytes"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// element is the part of a picture's element that the tests need.
type element struct {
	name  string
	attrs map[string]string
	text  string // including the text of its children
}

func (e element) num(t *testing.T, name string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(e.attrs[name], 64)
	require.NoError(t, err)
	return f
}

func wellFormed(t *testing.T, b []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

func parse(t *testing.T, b []byte) []element {
	t.Helper()
	var list []element
	var open []int
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		token, err := d.Token()
		if err == io.EOF {
			require.Empty(t, open)
			return list
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attrs: map[string]string{}}
			for _, a := range token.Attr {
				_, twice := e.attrs[a.Name.Local]
				require.False(t, twice, "%s has two %s", e.name, a.Name.Local)
				e.attrs[a.Name.Local] = a.Value
			}
			open, list = append(open, len(list)), append(list, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, i := range open {
				list[i].text += string(token)
			}
		}
	}
}

func drawn(t *testing.T, r Run) []element {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, SVG(&b, r))
	return parse(t, b.Bytes())
}

func class(list []element, name string) (found []element) {
	for _, e := range list {
		if e.attrs["class"] == name {
			found = append(found, e)
		}
	}
	return found
}

// place returns where a run of this length must show an instant.
func place(end, at time.Duration) float64 {
	return gutter + leastPlot*at.Seconds()/end.Seconds()
}

func small(events ...history.Event) Run {
	return Run{Title: "small", Nodes: 3, Clients: 2, End: time.Second, Events: events}
}

func lockEvents(client, op int, key string, asked, granted, releasing, until time.Duration) []history.Event {
	events := []history.Event{
		{At: asked, Kind: history.Asked, Client: client, Op: op, Key: key},
		{At: granted, Kind: history.Granted, Client: client, Op: op, Key: key, Until: until},
	}
	if releasing != history.Never {
		events = append(events,
			history.Event{At: releasing, Kind: history.Releasing, Client: client, Op: op, Key: key, Until: until},
			history.Event{At: releasing + 10*ms, Kind: history.Released, Client: client, Op: op, Key: key})
	}
	return events
}

func TestEachHoldIsABarInItsPlace(t *testing.T) {
	r := small(append(
		lockEvents(1, 1, "a", 100*ms, 120*ms, 300*ms, 500*ms),
		lockEvents(2, 1, "a", 200*ms, 400*ms, 700*ms, 600*ms)...)...)
	list := drawn(t, r)
	holds := class(list, "hold")
	require.Len(t, holds, 2)
	for i, want := range []struct {
		lock     string
		from, to time.Duration
	}{
		{"c1#1", 120 * ms, 300 * ms}, // until it is given up
		{"c2#1", 400 * ms, 600 * ms}, // until it is no longer valid
	} {
		require.Equal(t, want.lock, holds[i].attrs["data-lock"])
		require.InDelta(t, place(r.End, want.from), holds[i].num(t, "x"), 0.02)
		require.InDelta(t, place(r.End, want.to), holds[i].num(t, "x")+holds[i].num(t, "width"), 0.02)
	}
	require.Less(t, holds[0].num(t, "y"), holds[1].num(t, "y"), "each client has its lane")

	waits := class(list, "wait")
	require.Len(t, waits, 2)
	require.InDelta(t, place(r.End, 200*ms), waits[1].num(t, "x"), 0.02)
	require.InDelta(t, place(r.End, 400*ms), waits[1].num(t, "x")+waits[1].num(t, "width"), 0.02)

	tails := class(list, "tail")
	require.Len(t, tails, 2)
	require.InDelta(t, place(r.End, 310*ms), tails[0].num(t, "x")+tails[0].num(t, "width"), 0.02)
}

func TestUnreleasedLockEndsWithItsValidity(t *testing.T) {
	r := small(lockEvents(1, 1, "a", 100*ms, 120*ms, history.Never, 650*ms)...)
	holds := class(drawn(t, r), "hold")
	require.Len(t, holds, 1)
	require.InDelta(t, place(r.End, 650*ms), holds[0].num(t, "x")+holds[0].num(t, "width"), 0.02)
}

func TestLockWhoseContextEndedIsPale(t *testing.T) {
	r := small(append(lockEvents(1, 1, "a", 0, 100*ms, history.Never, 800*ms),
		history.Event{At: 500 * ms, Kind: history.Ended, Client: 1, Op: 1, Key: "a", Until: 800 * ms, Err: "lost"})...)
	list := drawn(t, r)
	holds, tails := class(list, "hold"), class(list, "tail")
	require.Len(t, holds, 1)
	require.Len(t, tails, 1)
	require.InDelta(t, place(r.End, 500*ms), holds[0].num(t, "x")+holds[0].num(t, "width"), 0.02)
	require.InDelta(t, place(r.End, 800*ms), tails[0].num(t, "x")+tails[0].num(t, "width"), 0.02)
	require.Len(t, class(list, "ended"), 1)
}

func TestConcurrentOperationsOfAClientAreStacked(t *testing.T) {
	holds := class(drawn(t, small(append(
		lockEvents(1, 1, "a", 100*ms, 120*ms, 600*ms, 900*ms),
		lockEvents(1, 2, "b", 200*ms, 220*ms, 400*ms, 900*ms)...)...)), "hold")
	require.Len(t, holds, 2)
	require.GreaterOrEqual(t, holds[1].num(t, "y"), holds[0].num(t, "y")+holds[0].num(t, "height"))
}

func TestViolationIsARedBandOverAllLanes(t *testing.T) {
	r := small(append(
		lockEvents(1, 1, "a", 100*ms, 120*ms, 500*ms, 900*ms),
		lockEvents(2, 1, "a", 300*ms, 320*ms, 700*ms, 900*ms)...)...)
	require.Empty(t, class(drawn(t, r), "violation"))

	r.Violations = history.Check(r.Events)
	require.NotEmpty(t, r.Violations)
	list := drawn(t, r)
	bands := class(list, "violation")
	require.Len(t, bands, len(r.Violations))
	require.Equal(t, alarm, bands[0].attrs["fill"])
	require.InDelta(t, place(r.End, 320*ms), bands[0].num(t, "x"), 0.02)
	require.InDelta(t, place(r.End, 500*ms), bands[0].num(t, "x")+bands[0].num(t, "width"), 0.02)
	for _, e := range append(class(list, "hold"), class(list, "wait")...) {
		require.Less(t, bands[0].num(t, "y"), e.num(t, "y"))
		require.Greater(t, bands[0].num(t, "y")+bands[0].num(t, "height"), e.num(t, "y")+e.num(t, "height"))
	}
	framed := map[string]bool{}
	for _, e := range class(list, "framed") {
		framed[e.attrs["data-lock"]] = true
	}
	require.Equal(t, map[string]bool{"c1#1": true, "c2#1": true}, framed)
	require.Contains(t, list[0].text, r.Violations[0].Rule)
}

func TestTextsAreEscaped(t *testing.T) {
	const evil = `<&"']]>` + "\x00\x1b"
	r := small(lockEvents(1, 1, evil, 100*ms, 120*ms, 500*ms, 900*ms)...)
	r.Title, r.Command = evil, evil
	r.Events = append(r.Events,
		history.Event{At: 0, Kind: history.Fault, Text: evil, Until: 300 * ms},
		history.Event{At: 1, Kind: history.Stored, Node: 1, Client: 1, Op: 1, Key: evil, Until: 300 * ms},
		history.Event{At: 1, Kind: history.Stored, Node: 1, Client: 1, Op: 1, Key: "b", Until: 300 * ms},
		history.Event{At: 2, Kind: history.Voted, Node: 1, Client: 1, Op: 1, Err: evil})
	r.Violations = []history.Violation{{At: 200 * ms, Rule: evil, Key: evil, Text: evil}}
	require.Contains(t, drawn(t, r)[0].text, `<&"'`)

	var page bytes.Buffer
	require.NoError(t, HTML(&page, r))
	require.NotContains(t, page.String(), "<&")
	require.NotContains(t, page.String(), "\x1b")
}

func TestNothingIsDrawnOutside(t *testing.T) {
	r := small(append(
		lockEvents(1, 1, "a", -300*ms, -100*ms, 1500*ms, 3*time.Second),
		lockEvents(2, 1, "b", 1200*ms, 1300*ms, 1500*ms, 3*time.Second)...)...)
	for _, at := range []time.Duration{-50 * ms, time.Second, 1100 * ms, history.Never} {
		r.Events = append(r.Events,
			history.Event{At: at, Kind: history.Voted, Node: 1, Client: 1, Op: 1, Text: "granted"},
			history.Event{At: at, Kind: history.Stored, Node: 1, Client: 1, Op: 1, Key: "a", Until: history.Never},
			history.Event{At: at, Kind: history.Fault, Node: 2, Text: "a long name of a fault that is over at once"},
			history.Event{At: at, Kind: history.Fault, Text: "everywhere", Until: history.Never},
			history.Event{At: at, Kind: history.Paused, Client: 2},
			history.Event{At: at, Kind: history.Died, Client: 1})
	}
	r.Violations = []history.Violation{{At: -1}, {At: time.Second, Text: strings.Repeat("long ", 100)}, {At: history.Never}}
	list := drawn(t, r)
	w := list[0].num(t, "width")
	require.InDelta(t, gutter+leastPlot+margin, w, 0.01)
	for _, e := range list {
		if e.name != "rect" || e.attrs["class"] == "" || e.attrs["class"] == "paper" {
			continue
		}
		require.GreaterOrEqual(t, e.num(t, "x"), gutter-0.01, "%v", e)
		require.LessOrEqual(t, e.num(t, "x")+e.num(t, "width"), gutter+leastPlot+0.01, "%v", e)
	}
	require.Len(t, class(list, "vote granted"), 1, "of those votes only one is in the run")
	require.Len(t, class(list, "violation"), 1)
}

func TestNodeLanesShowOwnersAndVotes(t *testing.T) {
	at := func(at time.Duration, kind history.Kind, client int, text, err string) history.Event {
		return history.Event{At: at, Kind: kind, Node: 2, Client: client, Op: 1, Key: "a", Text: text, Err: err, Until: 0}
	}
	stored := func(when time.Duration, client int, until time.Duration) history.Event {
		e := at(when, history.Stored, client, "", "")
		e.Until = until
		return e
	}
	r := small(
		stored(100*ms, 1, 400*ms), stored(300*ms, 1, 600*ms), // extended
		stored(500*ms, 2, 700*ms), // taken over, expires
		stored(800*ms, 1, 2*time.Second), at(900*ms, history.Removed, 1, "", ""),
		at(100*ms, history.Voted, 1, "granted", ""), at(150*ms, history.Voted, 2, "refused", ""), at(160*ms, history.Voted, 2, "", "no answer in time"))
	list := drawn(t, r)
	bars := class(list, "stored")
	require.Len(t, bars, 3)
	for i, want := range []struct {
		client   int
		from, to time.Duration
	}{{1, 100 * ms, 500 * ms}, {2, 500 * ms, 700 * ms}, {1, 800 * ms, 900 * ms}} {
		require.Equal(t, paintOf(want.client).fill, bars[i].attrs["fill"])
		require.InDelta(t, place(r.End, want.from), bars[i].num(t, "x"), 0.02)
		require.InDelta(t, place(r.End, want.to), bars[i].num(t, "x")+bars[i].num(t, "width"), 0.02)
	}
	for _, v := range []vote{granted, refused, failed} {
		require.Len(t, class(list, "vote "+string(v)), 1, v)
	}
}

func TestWidthGrowsWithTheRunUpToABound(t *testing.T) {
	for end, want := range map[time.Duration]float64{
		time.Second: leastPlot, 20 * time.Second: 20 * perSecond, time.Hour: mostPlot,
	} {
		require.InDelta(t, gutter+want+margin, drawn(t, Run{End: end})[0].num(t, "width"), 0.01)
	}
}

func TestLanesThatWereNotAnnouncedAreShown(t *testing.T) {
	r := small(history.Event{At: 1, Kind: history.Asked, Client: 7, Op: 1}, history.Event{At: 1, Kind: history.Voted, Client: 7, Op: 1, Node: 8})
	text := drawn(t, r)[0].text
	require.Contains(t, text, "client 7")
	require.Contains(t, text, "node 8")
	require.NotContains(t, text, "client 3")
}
