//go:build linux

package chaos

import (
	"math/rand/v2"
	"time"
)

// draw is a fault that has been decided on, with all that any kind of fault needs:
// so the sequence of draws depends on the seed and on nothing else.
type draw struct {
	kind  *kind
	nodes []int         // of which masters, or the wires to them
	place int           // of which client, for faults of clients and of pairs
	pair  bool          // the wires of that client only
	lasts time.Duration // if it is one that lasts
	delay time.Duration // of bytes
	cuts  int           // of replies
	lose  bool          // what a stall has held back
	pause time.Duration // before the next one
}

// drawFault rolls the dice. Mostly few masters are struck; now and then a majority.
func drawFault(dice *rand.Rand, masters, seats int) draw {
	d := draw{
		kind:  drawKind(dice),
		nodes: dice.Perm(masters),
		place: dice.IntN(seats),
		pair:  dice.IntN(2) == 0,
		lasts: 50*time.Millisecond + upTo(dice, 450*time.Millisecond),
		delay: 5*time.Millisecond + upTo(dice, 3*nodeTimeout/2),
		cuts:  1 + dice.IntN(4),
		lose:  dice.IntN(2) == 0,
		pause: 30*time.Millisecond + upTo(dice, 170*time.Millisecond),
	}
	majority := masters/2 + 1
	few := 1 + dice.IntN(max(1, masters-majority))
	many := majority + dice.IntN(masters-majority+1)
	// The wires of one client fail more often in a majority, and for longer: it is cut
	// off, and may be wrong about its locks, while the others go on and can prove it.
	odds, longer := 12, upTo(dice, longestTTL)
	if d.pair && d.kind.wire != nil {
		odds = 2
		d.lasts += longer
	}
	if dice.IntN(odds) == 0 {
		d.nodes = d.nodes[:many]
	} else {
		d.nodes = d.nodes[:few]
	}
	return d
}

func drawKind(dice *rand.Rand) *kind {
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	left := dice.IntN(sum)
	for i := range kinds {
		if left -= kinds[i].weight; left < 0 {
			return &kinds[i]
		}
	}
	panic("unreachable")
}

// upTo is a duration in [0, d).
func upTo(dice *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(d)))
}
