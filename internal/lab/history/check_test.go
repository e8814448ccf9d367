package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rules lists the broken rules.
func rules(violations []Violation) (broken []string) {
	for _, v := range violations {
		broken = append(broken, v.Rule)
	}
	return broken
}

func TestExclusion(t *testing.T) {
	other := of(2, 1, "other")
	for name, c := range map[string]struct {
		events []Event
		broken bool
	}{
		"an overlap of a nanosecond is found": {
			[]Event{one(1*s, Granted, 9*s), two(9*s-1, Granted, 19*s)}, true,
		},
		"holds that touch do not overlap": {
			[]Event{one(1*s, Granted, 9*s), two(9*s, Granted, 19*s)}, false,
		},
		"a release frees before validity is over": {
			[]Event{one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0), two(3*s, Granted, 12*s)}, false,
		},
		"from its call on": {
			[]Event{one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), two(2*s, Granted, 12*s), one(3*s, Released, 0)}, false,
		},
		"and not earlier": {
			[]Event{one(1*s, Granted, 9*s), two(2*s-1, Granted, 12*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0)}, true,
		},
		"what expired is free, though its release comes later": {
			[]Event{one(1*s, Granted, 9*s), two(9*s, Granted, 19*s), one(10*s, Releasing, 9*s), failed(one(11*s, Released, 0))}, false,
		},
		"an extended hold lasts longer": {
			[]Event{one(1*s, Granted, 9*s), one(2*s, Extending, 0), one(3*s, Extended, 13*s), two(12*s, Granted, 20*s)}, true,
		},
		"a renewed one too": {
			[]Event{one(1*s, Granted, 9*s), one(3*s, Renewed, 13*s), two(12*s, Granted, 20*s)}, true,
		},
		"a client that died holds nothing": {
			[]Event{one(1*s, Granted, 9*s), to(1, 3*s, Died), two(3*s, Granted, 12*s)}, false,
		},
		"but did until then": {
			[]Event{one(1*s, Granted, 9*s), to(1, 3*s, Died), two(3*s-1, Granted, 12*s)}, true,
		},
		"keys do not disturb each other": {
			[]Event{one(1*s, Granted, 9*s), other(2*s, Granted, 9*s)}, false,
		},
		"a client excludes itself": {
			[]Event{one(1*s, Granted, 9*s), of(1, 2, "k")(2*s, Granted, 9*s)}, true,
		},
		"a hold of no length is one all the same": {
			[]Event{one(1*s, Granted, 9*s), two(5*s, Granted, 19*s), two(5*s, Releasing, 19*s)}, true,
		},
		"one that was handed out too late holds nothing": {
			[]Event{one(1*s, Granted, 9*s), two(3*s, Granted, 3*s)}, false,
		},
		"and takes nothing from the next": {
			[]Event{two(3*s, Granted, 3*s), one(3*s, Granted, 9*s)}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := overlaps(Locks(inOrder(c.events...)))
			if !c.broken {
				require.Empty(t, found)
				return
			}
			require.Equal(t, []string{Exclusion}, rules(found))
		})
	}
}

// The short hold in the middle does not hide the first one.
func TestTheFirstOfThreeOutlastsTheSecond(t *testing.T) {
	found := overlaps(Locks(inOrder(
		one(1*s, Granted, 100*s),
		two(2*s, Granted, 9*s), two(3*s, Releasing, 9*s), two(3*s, Released, 0),
		three(50*s, Granted, 60*s),
	)))
	require.Len(t, found, 2)
	for i, at := range []time.Duration{2 * s, 50 * s} {
		require.Equal(t, at, found[i].At)
		require.Equal(t, 1, found[i].Locks[0].Client)
		require.Equal(t, 2+i, found[i].Locks[1].Client)
	}
}

func TestAViolationNamesBothLocks(t *testing.T) {
	v := Check(inOrder(one(1*s, Asked, 0), one(1*s, Granted, 9*s), two(2*s, Asked, 0), two(6*s, Granted, 19*s)))[0]
	require.Equal(t, `6s exclusion: client 2's lock #1 of "k" begins 3s before client 1's lock #1 ends`, v.String())
	require.Equal(t, "k", v.Key)
	require.Equal(t, []int{1, 2}, []int{v.Locks[0].Client, v.Locks[1].Client}, "the earlier holder first")
}

func TestCheckListsViolationsByTime(t *testing.T) {
	a, b, c := of(1, 1, "a"), of(2, 1, "a"), of(3, 1, "z")
	found := Check(inOrder(
		a(1*s, Asked, 0), a(1*s, Granted, 9*s), b(1*s, Asked, 0), b(5*s, Granted, 14*s),
		c(1*s, Asked, 0), c(1*s, Granted, 9*s), of(4, 1, "z")(1*s, Asked, 0), of(4, 1, "z")(3*s, Granted, 12*s),
	))
	require.NotEmpty(t, found)
	require.Equal(t, "z", found[0].Key)
	for i := range found[1:] {
		require.LessOrEqual(t, found[i].At, found[i+1].At)
	}
}

func TestCheckFindsNothingInGoodHistories(t *testing.T) {
	require.Empty(t, Check(nil))
	require.Empty(t, CheckContexts(nil))
	good := inOrder(
		one(0, Asked, 0), one(1*s, Granted, 9*s), two(1*s, Asked, 0),
		one(2*s, Extending, 0), one(3*s, Extended, 12*s), one(4*s, Releasing, 12*s), one(4*s, Ended, 12*s), one(5*s, Released, 0),
		two(5*s, Granted, 14*s), three(5*s, Asked, 0), failed(three(6*s, Denied, 0)), two(14*s, Ended, 14*s), two(15*s, Releasing, 14*s), failed(two(16*s, Released, 0)),
	)
	require.Empty(t, Check(good))
	require.Empty(t, CheckContexts(good))
}

func TestContexts(t *testing.T) {
	granted := one(1*s, Granted, 9*s)
	for name, c := range map[string]struct {
		events []Event
		broken bool
	}{
		"done when the next is granted": {
			[]Event{granted, one(9*s, Ended, 9*s), two(9*s, Granted, 19*s)}, false,
		},
		"done a nanosecond later": {
			[]Event{granted, one(9*s+1, Ended, 9*s), two(9*s, Granted, 19*s)}, true,
		},
		"never done": {
			[]Event{granted, two(20*s, Granted, 29*s)}, true,
		},
		"not done, and nobody else comes": {
			[]Event{granted, of(2, 1, "other")(20*s, Granted, 29*s)}, false,
		},
		"not done after the release": {
			[]Event{granted, one(3*s, Releasing, 9*s), two(4*s, Granted, 12*s), one(5*s, Ended, 9*s)}, true,
		},
		"not done of the first of three": {
			[]Event{granted, one(50*s, Ended, 9*s), one(3*s, Releasing, 9*s), to(1, 3*s, Paused), to(1, 5*s, Resumed), two(4*s, Granted, 12*s), two(5*s, Ended, 12*s), three(20*s, Granted, 29*s)}, true,
		},
		"excused while the client stands still": {
			[]Event{granted, to(1, 8*s, Paused), two(15*s, Granted, 24*s), to(1, 20*s, Resumed), one(20*s, Ended, 9*s)}, false,
		},
		"and does not wake again": {
			[]Event{granted, to(1, 8*s, Paused), two(15*s, Granted, 24*s)}, false,
		},
		"and just when it has woken": {
			[]Event{granted, to(1, 8*s, Paused), to(1, 20*s, Resumed), two(20*s, Granted, 29*s), one(20*s+10*time.Microsecond, Ended, 9*s)}, false,
		},
		"not excused when it has been awake for a while": {
			[]Event{granted, to(1, 8*s, Paused), to(1, 10*s, Resumed), two(15*s, Granted, 24*s), one(20*s, Ended, 9*s)}, true,
		},
		"nor by a pause that was over before": {
			[]Event{granted, to(1, 5*s, Paused), to(1, 9*s-1, Resumed), two(9*s, Granted, 18*s), one(20*s, Ended, 9*s)}, true,
		},
		"nor by one that came when it should have known": {
			[]Event{granted, to(1, 10*s, Paused), two(15*s, Granted, 24*s), to(1, 20*s, Resumed), one(20*s, Ended, 9*s)}, true,
		},
		"nor by another's pause": {
			[]Event{granted, to(3, 8*s, Paused), two(15*s, Granted, 24*s), one(20*s, Ended, 9*s)}, true,
		},
		"excused in the second of two pauses without a break": {
			[]Event{granted, to(1, 8*s, Paused), to(1, 10*s, Resumed), to(1, 10*s, Paused), two(15*s, Granted, 24*s), to(1, 20*s, Resumed), one(20*s, Ended, 9*s)}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := CheckContexts(inOrder(c.events...))
			if !c.broken {
				require.Empty(t, found)
				return
			}
			require.Contains(t, rules(found), Context)
			require.Equal(t, 1, found[len(found)-1].Locks[0].Client)
			require.Contains(t, found[0].String(), "the context of client 1's lock #1 was not done when client ")
		})
	}
}

// A process that has ended notices nothing, and the process that took its place notices what it has to.
func TestCheckContextsKnowsProcesses(t *testing.T) {
	events := []Event{
		{At: 1, Kind: Granted, Client: 1, Op: 1, Key: "k", Until: 10},
		{At: 5, Kind: Died, Client: 1},
		{At: 12, Kind: Granted, Client: 2, Op: 1, Key: "k", Until: 15},
		{At: 13, Kind: Started, Client: 1},
		{At: 14, Kind: Ended, Client: 2, Op: 1, Key: "k", Until: 15},
		{At: 20, Kind: Granted, Client: 1, Op: 2, Key: "k", Until: 30},
	}
	assert.Empty(t, CheckContexts(events))
	events = append(events, Event{At: 31, Kind: Granted, Client: 2, Op: 2, Key: "k", Until: 40})
	found := CheckContexts(events)
	require.Len(t, found, 1)
	assert.Equal(t, Context, found[0].Rule)
	assert.Equal(t, 2, found[0].Locks[0].Op)
}

func TestFingerprint(t *testing.T) {
	one := []Event{{At: 1, Kind: Asked, Client: 1, Op: 1, Key: "k"}}
	assert.Equal(t, Fingerprint(one), Fingerprint(one))
	assert.Regexp(t, "^[0-9a-f]{16}$", Fingerprint(one))
	assert.NotEqual(t, Fingerprint(one), Fingerprint([]Event{{At: 2, Kind: Asked, Client: 1, Op: 1, Key: "k"}}))
}
