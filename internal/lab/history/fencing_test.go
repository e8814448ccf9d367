package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// with gives an event a token.
func with(token int64, e Event) Event {
	e.Token = token
	return e
}

func TestTokensGrow(t *testing.T) {
	again := of(1, 2, "k")
	for name, c := range map[string]struct {
		events []Event
		broken []string
	}{
		"after a release": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), one(2*s, Releasing, 9*s), one(3*s, Released, 0), two(3*s, Asked, 0), with(6, two(4*s, Granted, 9*s))}, nil,
		},
		"after expiry": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), two(2*s, Asked, 0), with(6, two(9*s, Granted, 19*s))}, nil,
		},
		"not after a release": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), one(2*s, Releasing, 9*s), one(3*s, Released, 0), two(3*s, Asked, 0), with(4, two(4*s, Granted, 9*s))}, []string{Fencing, Fencing},
		},
		"not after expiry": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), two(20*s, Asked, 0), with(4, two(21*s, Granted, 29*s))}, []string{Fencing, Fencing},
		},
		"not beside a lock that is still held": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), two(2*s, Asked, 0), with(4, two(3*s, Granted, 9*s))}, []string{Exclusion, Fencing, Model},
		},
		"but do beside one, which is for another rule": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), two(2*s, Asked, 0), with(6, two(3*s, Granted, 9*s))}, []string{Exclusion, Model},
		},
		"not for the same client": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), again(10*s, Asked, 0), with(4, again(11*s, Granted, 19*s))}, []string{Fencing, Fencing},
		},
		"the same again": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), two(10*s, Asked, 0), with(5, two(11*s, Granted, 19*s))}, []string{Fencing, Fencing},
		},
		"the same of two that were under way at one time": {
			[]Event{one(0, Asked, 0), two(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), with(5, two(11*s, Granted, 19*s))}, []string{Fencing, Fencing},
		},
		"lower than that before the last": {
			[]Event{
				one(0, Asked, 0), with(5, one(1*s, Granted, 2*s)), two(3*s, Asked, 0), two(4*s, Granted, 5*s),
				three(6*s, Asked, 0), with(4, three(7*s, Granted, 9*s)),
			}, []string{Fencing, Fencing},
		},
		"a lock without a token is passed over": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 2*s)), two(3*s, Asked, 0), two(4*s, Granted, 5*s), three(6*s, Asked, 0), with(6, three(7*s, Granted, 9*s))}, nil,
		},
		"keys have tokens of their own": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), of(2, 1, "l")(2*s, Asked, 0), with(5, of(2, 1, "l")(3*s, Granted, 9*s)), of(2, 2, "m")(4*s, Asked, 0), with(1, of(2, 2, "m")(5*s, Granted, 9*s))}, nil,
		},
		"handed out late by a client that stood still": {
			[]Event{one(0, Asked, 0), two(1*s, Asked, 0), with(6, two(10*s, Granted, 19*s)), with(5, one(12*s, Granted, 9*s))}, nil,
		},
		"and those asked for later are above both": {
			[]Event{one(0, Asked, 0), two(1*s, Asked, 0), with(8, two(10*s, Granted, 11*s)), with(5, one(12*s, Granted, 9*s)), three(13*s, Asked, 0), with(6, three(14*s, Granted, 19*s))}, []string{Fencing, Fencing},
		},
		"under way at one time, but held one after the other": {
			// The second is asked for before the first is handed out, and gets the lock
			// after its release: no order has it first.
			[]Event{
				one(0, Asked, 0), two(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), one(2*s, Extending, 0), with(5, one(3*s, Extended, 9*s)),
				one(4*s, Releasing, 9*s), one(5*s, Released, 0), with(4, two(6*s, Granted, 19*s)), two(7*s, Extending, 0), two(8*s, Extended, 19*s),
			}, []string{Fencing},
		},
		"kept through an extension and the end": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), one(2*s, Extending, 0), with(5, one(3*s, Extended, 9*s)), with(5, one(9*s, Ended, 9*s))}, nil,
		},
		"changed by an extension": {
			[]Event{one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), one(2*s, Extending, 0), with(6, one(3*s, Extended, 9*s))}, []string{Fencing},
		},
		"what nodes are asked for is not yet a token": {
			[]Event{one(0, Asked, 0), with(3, one(0, Voted, 0)), with(5, one(1*s, Granted, 9*s))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := Check(inOrder(c.events...))
			got := rules(found)
			require.ElementsMatch(t, c.broken, got)
			for _, v := range found {
				require.Equal(t, "k", v.Key)
				require.NotEmpty(t, v.Locks)
				require.NotZero(t, v.At)
			}
		})
	}
}

// A violation names first the earlier holder, which has the higher token.
func TestATokenThatWentBackNamesBothLocks(t *testing.T) {
	found := backwards(inOrder(one(0, Asked, 0), with(5, one(1*s, Granted, 9*s)), two(10*s, Asked, 0), with(4, two(11*s, Granted, 19*s))))
	require.Len(t, found, 1)
	require.Equal(t, `11s fencing: client 2's lock #1 of "k" has token 4, below 5 of client 1's lock #1, which had been handed out when it was asked for`, found[0].String())
	require.Equal(t, []int64{5, 4}, []int64{found[0].Locks[0].Token, found[0].Locks[1].Token})
}
