package waitqueue

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/internal/protocol"
)

func TestNext(t *testing.T) {
	for _, line := range lines(t, "testdata/next.txt") {
		columns := strings.Split(line, "|")
		require.Len(t, columns, 4, line)
		t.Run(strings.TrimSpace(columns[0]), func(t *testing.T) {
			w, s := begin(), Situation{CanWake: always, Counts: always}
			for i, text := range strings.Fields(columns[1]) {
				w.nodes[i] = parseNode(t, text)
			}
			for _, text := range strings.Fields(columns[2]) {
				set(t, w, &s, text)
			}
			step := w.Next(now, s)
			assert.Equal(t, strings.TrimSpace(columns[3]), describe(step))
			for node, asked := range step.Nodes {
				assert.Equal(t, asked || w.nodes[node].entry.pending(), w.nodes[node].entry.pending(), "a node that is asked has a pending question")
			}
		})
	}
}

func TestEntryStates(t *testing.T) {
	names := map[string]entry{"absent": absent, "requested": requested, "requestedUnheard": requestedUnheard, "inQueue": inQueue, "refreshing": refreshing}
	for _, line := range lines(t, "testdata/entry.txt") {
		columns := strings.Fields(line)
		require.Len(t, columns, 7, line)
		for _, name := range columns {
			require.Contains(t, names, name)
		}
		e := names[columns[0]]
		for i, got := range []entry{e.request(), e.answered(false), e.answered(true), e.unanswered(), e.subscribed(), e.unsubscribed()} {
			assert.Equal(t, names[columns[i+1]], got, "%s, column %d", columns[0], i+1)
		}
	}
}

// Next assumes that its step is taken: after each step the next one is to sleep.
func TestNextAssumesThatItsStepIsTaken(t *testing.T) {
	s := Situation{CanWake: always, Counts: always}
	w := begin()
	w.nodes = []node{{woken: true}, {woken: true}, {woken: true}, {}, {}}
	assert.Equal(t, Try, w.Next(now, s).Do)
	assert.Equal(t, Sleep, w.Next(now, s).Do, "the wake-ups are used up")
	for _, n := range w.nodes {
		assert.Equal(t, node{entry: requested}, n, "a try asks for an entry too")
	}
}

func TestLooksAreAfterPausesThatDouble(t *testing.T) {
	s := Situation{CanWake: always, Counts: always}
	w := begin()
	pauses := []time.Duration{}
	at := w.look.at
	for range 8 {
		assert.Equal(t, Sleep, w.Next(at.Add(-1), s).Do)
		assert.Equal(t, Enqueue, w.Next(at, s).Do)
		pauses = append(pauses, w.look.at.Sub(at))
		at = w.look.at
		for i := range w.nodes {
			w.nodes[i].entry = inQueue
		}
	}
	const sec = time.Second
	assert.Equal(t, []time.Duration{2 * sec, 4 * sec, 8 * sec, 15 * sec, 15 * sec, 15 * sec, 15 * sec, 15 * sec}, pauses)
	assert.LessOrEqual(t, 5*lastLook, fullLook, "each of five nodes is looked at in time")
}

// A wait takes a ticket above any that a node reported, at most three times. It takes none once it
// is queued on a majority.
func TestReplyWithAHigherTicketRaisesOurs(t *testing.T) {
	s := Situation{CanWake: always, Counts: always}
	w := begin()
	clear(w.nodes)
	raised := 0
	for i := range 5 {
		tail := in(time.Duration(i+1) * time.Hour).UnixMicro()
		w.Replied(now, 0, w.Ticket(), protocol.QueueReply{State: protocol.StateHeld, Changes: -1, Tail: tail})
		before := w.Ticket()
		if w.Next(now, s); w.Ticket() > before {
			raised++
			assert.GreaterOrEqual(t, w.Ticket(), tail)
		}
	}
	assert.Equal(t, maxRaises, raised)

	w = begin()
	clear(w.nodes)
	for i := range w.nodes {
		w.Replied(now, i, w.Ticket(), protocol.QueueReply{State: protocol.StateHeld, Changes: -1})
	}
	w.Replied(now, 0, w.Ticket(), protocol.QueueReply{State: protocol.StateHeld, Changes: -1, Tail: in(time.Hour).UnixMicro()})
	assert.False(t, w.raiseIt, "a waiter whose clock is ahead came later")
}

// A majority is free when the key of the third of five nodes is over.
func TestMajorityFreeAt(t *testing.T) {
	at := func(ms int) node { return node{freeAt: in(time.Duration(ms) * time.Millisecond)} }
	woken := node{woken: true}
	for _, tc := range []struct {
		nodes []node
		want  time.Duration // zero if unknown
	}{
		{nil, 0},
		{[]node{at(1), at(2)}, 0},
		{[]node{at(1), at(2), at(3)}, 3 * time.Millisecond},
		{[]node{at(5), at(1), at(4), at(2), at(3)}, 3 * time.Millisecond},
		{[]node{woken, woken, at(7)}, 7 * time.Millisecond},
		{[]node{woken, woken, woken}, 0},
	} {
		w := begin()
		copy(w.nodes, tc.nodes)
		got := w.majorityFreeAt(always)
		if tc.want == 0 {
			assert.Zero(t, got, "%v", tc.nodes)
		} else {
			assert.Equal(t, tc.want, got.Sub(now), "%v", tc.nodes)
		}
	}
}

// A waiter that is not first leaves those ahead a second, and those behind their order. The node's
// reply has the time that a woken waiter has left.
func TestPatience(t *testing.T) {
	for _, tc := range []struct {
		state protocol.QueueState
		ahead int64
		want  time.Duration
	}{
		{protocol.StateHeld, 0, 0},
		{protocol.StateHeld, 1, wakeGrace + inOrder},
		{protocol.StateHeld, 3, wakeGrace + 3*inOrder},
		{protocol.StateAhead, 3, 3 * inOrder},
		{protocol.StateHeld, math.MaxInt64, wakeGrace + time.Second},
	} {
		assert.Equal(t, tc.want, patience(protocol.QueueReply{State: tc.state, Ahead: tc.ahead}), "%v", tc)
	}
}

// A message about an entry that was given up concerns no wait.
func TestMessagesForAnEntryThatWasGivenUp(t *testing.T) {
	w := begin()
	ticket := w.Ticket()
	assert.False(t, w.Left(ticket))
	known, late := w.Woken(now, 0, ticket)
	assert.True(t, known)
	assert.False(t, late)

	w.Tried(now, false, true, 0)
	assert.True(t, w.Left(ticket), "a try without a majority leaves the queue")
	known, _ = w.Woken(now, 0, ticket)
	assert.False(t, known)

	w.Probed(now, true)
	assert.True(t, w.Left(ticket), "the entry of before")
	assert.False(t, w.Left(w.Ticket()))
	known, _ = w.Woken(now, 1, w.Ticket())
	assert.True(t, known)

	w.nodes[1].entry = inQueue
	assert.Equal(t, []bool{false, true, false, false, false}, w.Won(), "woken, and not used")
	known, late = w.Woken(now, 2, w.Ticket())
	assert.True(t, known)
	assert.True(t, late, "the lock can grow")

	w.End(now)
	assert.True(t, w.Left(w.Ticket()))
	known, late = w.Woken(now, 3, w.Ticket())
	assert.True(t, known, "it crossed with the end")
	assert.False(t, late)
	assert.False(t, w.Forgettable(now))
	known, _ = w.Woken(in(crossing), 3, w.Ticket())
	assert.False(t, known)
	assert.True(t, w.Forgettable(in(crossing)))
}

// A node that has woken the wait is free, whatever it replied before.
func TestNextAfterAWakeUpForgetsWhenTheKeyExpires(t *testing.T) {
	w := begin()
	for i := range w.nodes {
		w.nodes[i].freeAt = in(9 * time.Second)
	}
	w.nodes[2].freeAt = in(2 * time.Second)
	for i := range 2 {
		known, _ := w.Woken(now, i, w.Ticket())
		require.True(t, known)
	}
	at := w.majorityFreeAt(always)
	assert.Equal(t, in(2*time.Second), at, "two are free, and the third will be")
}
