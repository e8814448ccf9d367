package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The times in these tests' histories are in seconds.
const s = time.Second

// of returns a function that makes events of a client's lock op on a key.
func of(client, op int, key string) func(at time.Duration, kind Kind, until time.Duration) Event {
	return func(at time.Duration, kind Kind, until time.Duration) Event {
		return Event{At: at, Kind: kind, Client: client, Op: op, Key: key, Until: until}
	}
}

// Three clients, each with a lock of the same key.
var one, two, three = of(1, 1, "k"), of(2, 1, "k"), of(3, 1, "k")

// to returns an event of the client itself.
func to(client int, at time.Duration, kind Kind) Event {
	return Event{At: at, Kind: kind, Client: client}
}

// failed gives an event an error.
func failed(e Event) Event {
	e.Err = "no quorum"
	return e
}

// inOrder returns events in the order of a log.
func inOrder(events ...Event) []Event {
	var l Log
	for _, e := range events {
		l.Add(e)
	}
	return l.Events()
}

func TestLogSortsByTimeThenByClientAndKeepsTheRest(t *testing.T) {
	got := inOrder(two(2*s, Asked, 0), one(3*s, Asked, 0), two(1*s, Asked, 0), one(2*s, Asked, 0), two(2*s, Granted, 9*s), one(2*s, Granted, 9*s))
	require.Equal(t, []Event{
		two(1*s, Asked, 0), one(2*s, Asked, 0), one(2*s, Granted, 9*s), two(2*s, Asked, 0), two(2*s, Granted, 9*s), one(3*s, Asked, 0),
	}, got)
}

func TestEventTellsWhatItKnows(t *testing.T) {
	require.Equal(t, `1s granted client 1 #1 key "k" until 9s`, one(1*s, Granted, 9*s).String())
	require.Equal(t, `2s fault node 3: gone`, Event{At: 2 * s, Kind: Fault, Node: 3, Text: "gone"}.String())
	require.Equal(t, `2s released client 1 #1 key "k": no quorum`, failed(one(2*s, Released, 0)).String())
}

func TestLocks(t *testing.T) {
	for name, c := range map[string]struct {
		events []Event
		want   Lock
		end    time.Duration
	}{
		"an abandoned lock ends with its validity": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: Never, Ended: Never}, 9 * s,
		},
		"a release ends it earlier, from its call on": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(5*s, Releasing, 9*s), one(5*s, Ended, 9*s), one(6*s, Released, 0)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: 5 * s, Ended: 5 * s}, 5 * s,
		},
		"a late release does not lengthen it": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(9*s, Ended, 9*s), one(12*s, Releasing, 9*s)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: 12 * s, Ended: 9 * s}, 9 * s,
		},
		"of two releases the first counts": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(5*s, Releasing, 9*s), one(7*s, Releasing, 9*s)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: 5 * s, Ended: Never}, 5 * s,
		},
		"an extension moves its end": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(3*s, Extending, 0), one(4*s, Extended, 13*s)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 13 * s, Releasing: Never, Ended: Never}, 13 * s,
		},
		"an extension in vain does not": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(3*s, Extending, 0), failed(one(4*s, NotExtended, 13*s))},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: Never, Ended: Never}, 9 * s,
		},
		"a renewal moves it": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(3*s, Renewed, 12*s)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 12 * s, Releasing: Never, Ended: Never}, 12 * s,
		},
		"and so does one that only the release or the end reveals": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(12*s, Ended, 12*s), one(13*s, Releasing, 12*s)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 12 * s, Releasing: 13 * s, Ended: 12 * s}, 12 * s,
		},
		"death ends it": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), to(1, 4*s, Died)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: 4 * s, Ended: 4 * s}, 4 * s,
		},
		"death after the release changes nothing": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), one(3*s, Releasing, 9*s), one(3*s, Ended, 9*s), to(1, 4*s, Died)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: 3 * s, Ended: 3 * s}, 3 * s,
		},
		"another's death neither": {
			[]Event{one(1*s, Asked, 0), one(2*s, Granted, 9*s), to(2, 4*s, Died)},
			Lock{Asked: 1 * s, Granted: 2 * s, Until: 9 * s, Releasing: Never, Ended: Never}, 9 * s,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Client, c.want.Op, c.want.Key = 1, 1, "k"
			locks := Locks(inOrder(c.events...))
			require.Equal(t, []Lock{c.want}, locks)
			require.Equal(t, c.end, locks[0].End())
		})
	}
}

func TestLocksAreInTheOrderOfTheirGrants(t *testing.T) {
	locks := Locks(inOrder(two(1*s, Asked, 0), one(2*s, Asked, 0), one(3*s, Granted, 9*s), one(4*s, Releasing, 9*s), two(5*s, Granted, 9*s)))
	require.Len(t, locks, 2)
	require.Equal(t, "client 1's lock #1", locks[0].String())
	require.Equal(t, "client 2's lock #1", locks[1].String())
}

func TestADeniedAcquisitionIsNoLock(t *testing.T) {
	require.Empty(t, Locks(inOrder(one(1*s, Asked, 0), failed(one(2*s, Denied, 0)))))
}

// A client that goes on under a dead client's number holds the locks that it gets then.
func TestDeathEndsOnlyWhatWasHeld(t *testing.T) {
	again := of(1, 2, "k")
	locks := Locks(inOrder(one(1*s, Granted, 9*s), to(1, 2*s, Died), again(10*s, Granted, 19*s)))
	require.Equal(t, 2*s, locks[0].End())
	require.Equal(t, 19*s, locks[1].End())
}

// A client that closes gives up its locks, which may take effect at any time from then on.
func TestClosingReleases(t *testing.T) {
	held := []Event{one(0, Asked, 0), one(1*s, Granted, 9*s), two(1*s, Asked, 0), two(4*s, Granted, 12*s)}
	require.Empty(t, Check(inOrder(append(held, to(1, 3*s, Closed))...)))
	require.Empty(t, CheckContexts(inOrder(append(held, to(1, 3*s, Closed))...)))
	require.Equal(t, []string{Model}, rules(Check(inOrder(append(held, to(1, 3*s, Died))...))), "a dead client's keys live on")
	require.Equal(t, []string{Exclusion, Model}, rules(Check(inOrder(append(held, to(1, 5*s, Closed))...))))
}
