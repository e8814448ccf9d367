package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestModel(t *testing.T) {
	for name, c := range map[string]struct {
		events []Event
		misfit string // the operation that fits into no order
	}{
		"one after the other": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0), two(3*s, Asked, 0), two(4*s, Granted, 9*s)}, "",
		},
		"acquired after expiry": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(3*s, Asked, 0), two(9*s, Granted, 19*s)}, "",
		},
		"acquired before expiry": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(3*s, Asked, 0), two(9*s-1, Granted, 19*s)}, "client 2's lock #1: acquire",
		},
		"acquired while the release was under way": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(1*s, Asked, 0), one(2*s, Releasing, 9*s), two(3*s, Granted, 12*s), one(4*s, Released, 0)}, "",
		},
		"released while the acquisition was under way": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), two(2*s, Asked, 0), one(3*s, Released, 0), two(4*s, Granted, 12*s)}, "",
		},
		"acquired before the release was called": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(1*s, Asked, 0), two(2*s, Granted, 12*s), one(3*s, Releasing, 9*s), one(4*s, Released, 0)}, "client 2's lock #1: acquire",
		},
		"released with success though another has acquired": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(9*s, Asked, 0), two(10*s, Granted, 19*s), one(11*s, Releasing, 9*s), one(12*s, Released, 0)}, "client 1's lock #1: release",
		},
		"released in vain as another has acquired": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(9*s, Asked, 0), two(10*s, Granted, 19*s), one(11*s, Releasing, 9*s), failed(one(12*s, Released, 0))}, "",
		},
		"released in vain, and free": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), failed(one(3*s, Released, 0)), two(4*s, Asked, 0), two(5*s, Granted, 14*s)}, "",
		},
		"released in vain, and held until it expires": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), failed(one(3*s, Released, 0)), two(4*s, Asked, 0), two(9*s, Granted, 18*s)}, "",
		},
		"a release that never returned": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), two(4*s, Asked, 0), two(5*s, Granted, 14*s)}, "",
		},
		"extended while held": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Extending, 0), one(3*s, Extended, 13*s), two(4*s, Asked, 0), two(13*s, Granted, 22*s)}, "",
		},
		"acquired though extended": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Extending, 0), one(3*s, Extended, 13*s), two(4*s, Asked, 0), two(12*s, Granted, 21*s)}, "client 2's lock #1: acquire",
		},
		"extended with success after it was lost": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(9*s, Asked, 0), two(10*s, Granted, 12*s), two(11*s, Releasing, 12*s), two(12*s, Released, 0), one(13*s, Extending, 0), one(14*s, Extended, 23*s)}, "acquire",
		},
		"extended with success after its release": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0), one(4*s, Extending, 0), one(5*s, Extended, 9*s)}, "client 1's lock #1: extend",
		},
		"extended with success after its release, as another holds it": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0), two(4*s, Asked, 0), two(5*s, Granted, 14*s), one(6*s, Extending, 0), one(7*s, Extended, 9*s)}, "client 1's lock #1: extend",
		},
		"extended with success to an end that was over": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(9*s, Extending, 0), one(10*s, Extended, 9*s)}, "client 1's lock #1: extend",
		},
		"extended in vain after it was lost": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(9*s, Asked, 0), two(10*s, Granted, 19*s), one(11*s, Extending, 0), failed(one(12*s, NotExtended, 0))}, "",
		},
		"extended while the release was under way": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Extending, 0), one(2*s, Releasing, 9*s), one(3*s, Released, 0), one(4*s, Extended, 9*s)}, "",
		},
		"the dead hand out nothing, and what they held expires": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), to(1, 2*s, Died), two(3*s, Asked, 0), two(9*s, Granted, 18*s), three(3*s, Asked, 0), to(3, 4*s, Died)}, "",
		},
		"keys are apart": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), of(2, 1, "other")(1*s, Asked, 0), of(2, 1, "other")(2*s, Granted, 9*s)}, "",
		},
		"released once with success, and then in vain": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0), one(4*s, Releasing, 9*s), failed(one(5*s, Released, 0))}, "",
		},
		"released twice with success": {
			[]Event{one(0, Asked, 0), one(1*s, Granted, 9*s), one(2*s, Releasing, 9*s), one(3*s, Released, 0), one(4*s, Releasing, 9*s), one(5*s, Released, 0)}, "client 1's lock #1: release",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := disorder(inOrder(c.events...))
			if c.misfit == "" {
				require.Empty(t, found)
				return
			}
			require.Equal(t, []string{Model}, rules(found))
			require.Contains(t, found[0].Text, `no order of the operations on "k" has room for `)
			require.Contains(t, found[0].Text, c.misfit)
			require.Equal(t, "k", found[0].Key)
			require.Len(t, found[0].Locks, 1)
			require.NotZero(t, found[0].At)
		})
	}
}

// Releases that failed or never returned do not make the search for an order long.
func TestModelEndsBesideManyReleasesInVain(t *testing.T) {
	var events []Event
	at := time.Duration(0)
	for op := 1; op <= 100; op++ {
		its := of(1, op, "k")
		events = append(events, its(at, Asked, 0), its(at+1*s, Granted, at+9*s), its(at+2*s, Releasing, at+9*s))
		switch op % 3 {
		case 0:
			events = append(events, its(at+3*s, Released, 0))
		case 1:
			events = append(events, failed(its(at+3*s, Released, 0)))
		}
		at += 9 * s
	}
	events = append(events, to(1, at, Closed), two(at, Asked, 0), two(at+1*s, Granted, at+9*s), three(at, Asked, 0), three(at+2*s, Granted, at+9*s))
	found := disorder(inOrder(events...))
	require.Equal(t, []string{Model}, rules(found))
	require.Contains(t, found[0].Text, "has room for client 3's lock #1: acquire")
}

// The same events give the same violation each time, even where two orders are as long.
func TestModelNamesTheSameMisfitEachTime(t *testing.T) {
	events := inOrder(one(0, Asked, 0), one(2*s, Granted, 9*s), two(0, Asked, 0), two(3*s, Granted, 9*s), three(0, Asked, 0), three(4*s, Granted, 9*s))
	first := disorder(events)
	for range 50 {
		require.Equal(t, first, disorder(events))
	}
	require.Equal(t, "client 2's lock #1", first[0].Locks[0].String())
}

// Where holds do not overlap, the model judges the result of Release.
func TestCheckJudgesByTheModelToo(t *testing.T) {
	found := Check(inOrder(
		one(0, Asked, 0), one(1*s, Granted, 9*s), two(9*s, Asked, 0), two(10*s, Granted, 19*s),
		one(11*s, Releasing, 9*s), one(12*s, Released, 0), two(13*s, Releasing, 19*s), two(14*s, Released, 0),
	))
	require.Equal(t, []string{Model}, rules(found))
	require.Equal(t, 12*s, found[0].At)
	require.Equal(t, 1, found[0].Locks[0].Client)
}

func TestEachKeyIsJudgedAlone(t *testing.T) {
	var events []Event
	for i, key := range []string{"b", "a"} {
		first, second := of(1, 1+i, key), of(2, 1+i, key)
		events = append(events, first(0, Asked, 0), first(1*s, Granted, 9*s), second(1*s, Asked, 0), second(2*s, Granted, 9*s))
	}
	found := disorder(inOrder(events...))
	require.Len(t, found, 2)
	require.Equal(t, "a", found[0].Key)
	require.Equal(t, "b", found[1].Key)
}
