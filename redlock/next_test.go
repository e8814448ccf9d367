package redlock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

// now is the time of these tests, and in is so much later.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func in(d time.Duration) time.Time { return now.Add(d) }

func all(int) bool  { return true }
func none(int) bool { return false }

func not(which ...int) func(int) bool {
	return func(node int) bool {
		for _, i := range which {
			if i == node {
				return false
			}
		}
		return true
	}
}

// somewhere is a wait that stands on five nodes, each as given, and looks in 10 s.
func somewhere(nodes ...standing) *wait {
	r := &Redlock{cfg: Config{NodeTimeout: defaultNodeTimeout, Clock: clock.System()}}
	for len(nodes) < 5 {
		nodes = append(nodes, standing{in: true})
	}
	return &wait{r: r, changed: make(chan struct{}, 1), nodes: nodes, look: in(10 * time.Second), pause: firstLook, looked: 1}
}

func TestWhatIsNext(t *testing.T) {
	free, in5, on := standing{in: true, free: true}, standing{in: true, until: in(5 * time.Second)}, standing{in: true}
	failed := standing{again: in(time.Second)}
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		nodes         []standing
		set           func(w *wait)
		hears, counts func(int) bool
		ends          time.Time
		do            action
		at            time.Duration // for a sleep
		on            []int         // for a stand
	}{
		"nothing to do":                           {do: sleep, at: 10 * time.Second},
		"a majority is free":                      {nodes: []standing{free, free, free}, do: try},
		"a minority is free":                      {nodes: []standing{free, free}, do: sleep, at: 200 * ms},
		"a minority was free for a while":         {nodes: []standing{free, free}, set: func(w *wait) { w.freed, w.some = 2, in(-200*ms) }, do: stand, on: []int{2, 3, 4}},
		"a minority was free, and the rest asked": {nodes: []standing{free, free}, set: func(w *wait) { w.freed = 2 }, do: sleep, at: 10 * time.Second},
		"one more is free":                        {nodes: []standing{free, free}, set: func(w *wait) { w.freed = 1 }, do: sleep, at: 200 * ms},
		"free, but in quarantine":                 {nodes: []standing{free, free, free}, set: func(w *wait) { w.freed = 2 }, counts: not(2), do: sleep, at: 10 * time.Second},
		"free, but after a pause":                 {nodes: []standing{free, free, free}, set: func(w *wait) { w.notBefore = in(7 * ms) }, do: sleep, at: 7 * ms},
		"a majority expires":                      {nodes: []standing{in5, in5, in5}, do: sleep, at: 5 * time.Second},
		"a minority expires":                      {nodes: []standing{in5, in5}, do: sleep, at: 10 * time.Second},
		"free nodes and those that expire":        {nodes: []standing{free, in5, in5}, set: func(w *wait) { w.freed = 1 }, do: sleep, at: 5 * time.Second},
		"nodes of which nothing is known":         {nodes: []standing{{}, {}, on, on, on}, do: stand, on: []int{0, 1}},
		"they are asked already":                  {nodes: []standing{{asked: true}, {asked: true}, on, on, on}, do: sleep, at: 10 * time.Second},
		"they could not be asked a while ago":     {nodes: []standing{failed, failed, on, on, on}, do: sleep, at: time.Second},
		"one of them, and one for the first":      {nodes: []standing{failed, {}, on, on, on}, do: stand, on: []int{1}},
		"no place where we are not heard":         {nodes: []standing{{}, on, on, on, on}, hears: not(0), do: sleep, at: 10 * time.Second},
		"nor where there is no queue":             {nodes: []standing{{plain: true}, on, on, on, on}, do: sleep, at: 10 * time.Second},
		"a majority is heard, no poll":            {hears: not(0, 1), set: func(w *wait) { w.poll = in(ms) }, do: sleep, at: 10 * time.Second},
		"a minority is heard, poll":               {hears: not(0, 1, 2), set: func(w *wait) { w.poll = in(ms) }, do: sleep, at: ms},
		"at once, if it never tried":              {hears: none, do: try},
		"outside, a pause":                        {set: func(w *wait) { w.phase, w.poll = outside, in(ms) }, do: sleep, at: ms},
		"outside, after the pause":                {set: func(w *wait) { w.phase, w.poll = outside, now }, do: probe},
		"outside, whatever is free":               {nodes: []standing{free, free, free}, set: func(w *wait) { w.phase, w.poll, w.raise = outside, in(ms), true }, do: sleep, at: ms},
		"a quarantine ends, with a quorum":        {ends: in(3 * time.Second), do: sleep, at: 3 * time.Second},
		"a quarantine ends, without":              {set: func(w *wait) { w.phase, w.poll = outside, in(time.Minute) }, ends: in(3 * time.Second), do: sleep, at: 3 * time.Second},
		"a quarantine has ended, without":         {set: func(w *wait) { w.phase, w.poll, w.ends = outside, in(time.Minute), in(-1) }, do: probe},
		"it is time to look at one that answers":  {nodes: []standing{on, on, {in: true, mute: true}}, set: func(w *wait) { w.look = now }, do: stand, on: []int{2, 3}},
		"at a foreign client's pace":              {set: func(w *wait) { w.foreign, w.poll = foreign{first: true, seen: now}, in(ms) }, do: sleep, at: ms},
		"but only if we are the first":            {set: func(w *wait) { w.foreign, w.poll = foreign{seen: now}, in(ms) }, do: sleep, at: 10 * time.Second},
		"a foreign client is suspected":           {set: func(w *wait) { w.foreign.suspect = in(-50 * ms) }, do: sleep, at: 150 * ms},
		"it is time to look":                      {set: func(w *wait) { w.look = now }, do: stand, on: []int{2}},
		"behind somebody":                         {set: func(w *wait) { w.raise = true }, do: stand, on: []int{0, 1, 2, 3, 4}},
		"behind somebody, and free all the same":  {nodes: []standing{free, free, free}, set: func(w *wait) { w.raise = true }, do: stand, on: []int{0, 1, 2, 3, 4}},
	} {
		w := somewhere(tc.nodes...)
		if tc.set != nil {
			tc.set(w)
		}
		if tc.hears == nil {
			tc.hears = all
		}
		if tc.counts == nil {
			tc.counts = all
		}
		step := w.next(now, tc.hears, tc.counts, tc.ends)
		assert.Equal(t, tc.do, step.do, name)
		if tc.do == sleep {
			assert.Equal(t, tc.at, step.at.Sub(now), name)
		}
		var on []int
		for i, asked := range step.nodes {
			if asked && tc.do == stand {
				on = append(on, i)
				assert.True(t, w.nodes[i].asked, name)
			}
		}
		assert.Equal(t, tc.on, on, name)
	}
}

// What has been done is not done again: after each step the next is to sleep.
func TestNextTakesNote(t *testing.T) {
	w := somewhere(standing{free: true}, standing{free: true}, standing{free: true}, standing{}, standing{})
	assert.Equal(t, try, w.next(now, all, all, time.Time{}).do)
	assert.Equal(t, sleep, w.next(now, all, all, time.Time{}).do, "what we were told has been acted upon")
	for _, s := range w.nodes {
		assert.Equal(t, standing{asked: true, in: s.in}, s, "a try asks for a place too")
	}

	w = somewhere()
	pauses := []time.Duration{}
	at := w.look
	for range 8 {
		assert.Equal(t, sleep, w.next(at.Add(-1), all, all, time.Time{}).do)
		assert.Equal(t, stand, w.next(at, all, all, time.Time{}).do)
		pauses = append(pauses, w.look.Sub(at))
		at = w.look
		for i := range w.nodes {
			w.nodes[i].asked = false
		}
	}
	const s = time.Second
	assert.Equal(t, []time.Duration{2 * s, 4 * s, 8 * s, 15 * s, 15 * s, 15 * s, 15 * s, 15 * s}, pauses)
	assert.LessOrEqual(t, 5*lastLook, fullLook, "each of five nodes is looked at in time")
}

// A wait takes a higher ticket than any it was told of, three times at the most, and none
// once it stands in the queues of a majority.
func TestAWaitIsRaised(t *testing.T) {
	w := somewhere()
	w.nodes = make([]standing, len(w.nodes))
	w.r.cfg.Clock = clock.System()
	w.ticket = w.r.tickets.next(time.Now())
	raised := 0
	for i := range 5 {
		tail := time.Now().Add(time.Duration(i+1) * time.Hour).UnixMicro()
		w.heard(0, w.ticket, protocol.QueueReply{State: protocol.StateHeld, Changes: -1, Tail: tail})
		before := w.ticket
		if w.next(time.Now(), all, all, time.Time{}); w.ticket > before {
			raised++
			assert.GreaterOrEqual(t, w.ticket, tail)
		}
	}
	assert.Equal(t, maxRaises, raised)

	w = somewhere()
	w.r.cfg.Clock = clock.System()
	w.nodes = make([]standing, len(w.nodes))
	for i := range w.nodes {
		w.heard(i, w.ticket, protocol.QueueReply{State: protocol.StateHeld, Changes: -1})
	}
	w.heard(0, w.ticket, protocol.QueueReply{State: protocol.StateHeld, Changes: -1, Tail: time.Now().Add(time.Hour).UnixMicro()})
	assert.False(t, w.raise, "somebody whose clock is ahead came later")
}

// A majority's keys are over when the third of five is.
func TestExpiry(t *testing.T) {
	at := func(ms int) standing { return standing{in: true, until: in(time.Duration(ms) * time.Millisecond)} }
	for _, tc := range []struct {
		nodes []standing
		want  time.Duration // 0: cannot be said
	}{
		{nil, 0},
		{[]standing{at(1), at(2)}, 0},
		{[]standing{at(1), at(2), at(3)}, 3 * time.Millisecond},
		{[]standing{at(5), at(1), at(4), at(2), at(3)}, 3 * time.Millisecond},
		{[]standing{{free: true}, {free: true}, at(7)}, 7 * time.Millisecond},
		{[]standing{{free: true}, {free: true}, {free: true}}, 0},
	} {
		got := somewhere(tc.nodes...).expiry(3, all)
		if tc.want == 0 {
			assert.Zero(t, got, "%v", tc.nodes)
		} else {
			assert.Equal(t, tc.want, got.Sub(now), "%v", tc.nodes)
		}
	}
}

// Who is not first leaves those in front of him a second, and the others behind him their
// order; of whom a node has woken it has said itself how long he has.
func TestPatience(t *testing.T) {
	assert.Zero(t, patience(protocol.QueueReply{State: protocol.StateHeld}))
	assert.Equal(t, yield+inOrder, patience(protocol.QueueReply{State: protocol.StateHeld, Ahead: 1}))
	assert.Equal(t, yield+3*inOrder, patience(protocol.QueueReply{State: protocol.StateHeld, Ahead: 3}))
	assert.Equal(t, 3*inOrder, patience(protocol.QueueReply{State: protocol.StateAhead, Ahead: 3}))
	assert.Equal(t, yield+time.Second, patience(protocol.QueueReply{State: protocol.StateHeld, Ahead: math.MaxInt64}))
}

func TestTicketsGrow(t *testing.T) {
	var tickets tickets
	us := func(n int) time.Time { return in(time.Duration(n) * time.Microsecond) }
	t0 := now.UnixMicro()
	assert.Equal(t, t0, tickets.next(now))
	assert.Equal(t, t0+1, tickets.next(now), "in the same microsecond")
	assert.Equal(t, t0+2, tickets.next(in(-time.Second)), "of a clock that was set back")
	assert.Equal(t, t0+10, tickets.next(us(10)))
	assert.False(t, tickets.behind(t0+10, us(10)), "its clock is as ours")
	assert.False(t, tickets.behind(1, us(10)))
	assert.True(t, tickets.behind(t0+5_000_000, us(20)))
	assert.False(t, tickets.behind(t0+5_000_000, us(20)), "we know")
	assert.Equal(t, t0+5_000_001, tickets.next(us(20)))
	assert.Equal(t, t0+5_000_011, tickets.next(us(30)))
	assert.Equal(t, "9007199254740991", protocol.TicketText(maxTicket))
}

func TestTicketsOfClocksThatAreWrong(t *testing.T) {
	for _, wrong := range []time.Time{{}, time.Unix(0, 0), time.Unix(-1e9, 0), time.UnixMicro(mostCounted + 1), now.AddDate(200, 0, 0), time.UnixMicro(math.MaxInt64)} {
		var tickets tickets
		assert.Equal(t, int64(minTicket), tickets.next(wrong), "%v: above all times", wrong)
		assert.Equal(t, int64(minTicket+1), tickets.next(wrong))
		assert.Equal(t, int64(minTicket+7), tickets.next(wrong.Add(7*time.Microsecond)))
		assert.True(t, tickets.behind(now.UnixMicro(), wrong), "and goes by any other")
		assert.Equal(t, now.UnixMicro()+1, tickets.next(wrong))
	}
}

// A clock goes by any ticket that leaves decades of numbers above it, and by no other.
func TestTicketsFollow(t *testing.T) {
	for _, ahead := range []int64{now.Add(25 * time.Hour).UnixMicro(), mostCounted, mostFollowed} {
		var tickets tickets
		assert.True(t, tickets.behind(ahead, now))
		assert.Equal(t, ahead+1, tickets.next(now))
	}
	for _, nobodys := range []int64{mostFollowed + 1, maxTicket, math.MaxInt64, 0, -1, math.MinInt64} {
		var tickets tickets
		assert.False(t, tickets.behind(nobodys, now))
		assert.Equal(t, now.UnixMicro(), tickets.next(now))
	}
	const year = 365 * 24 * 3600 * 1_000_000
	assert.Greater(t, (maxTicket-mostFollowed)/year, 70)
	assert.Greater(t, (mostFollowed-mostCounted)/year, 70)
}

// That our clock is set right, after we have gone by the others', moves our tickets no more.
func TestTicketsAreNotMovedByASetClock(t *testing.T) {
	var tickets tickets
	start := time.Now()
	tickets.next(start)
	set := start.Add(time.Second)
	assert.True(t, tickets.behind(start.Add(56*365*24*time.Hour).UnixMicro(), set))
	before := tickets.next(set)
	assert.Equal(t, before+1_000_000, tickets.next(set.Add(time.Second)))
}

func TestTold(t *testing.T) {
	var told told
	assert.False(t, told.take("a"))
	told.note("a")
	told.note("a")
	told.note("b")
	assert.True(t, told.take("a"))
	assert.False(t, told.take("a"), "for one acquisition")
	for range maxTold {
		told.note(time.Now().String())
		assert.LessOrEqual(t, len(told.keys), maxTold)
	}
}
