//go:build linux

package chaos

import (
	"math/rand/v2"
	"time"
)

// draw is a fault that has been drawn, with all parameters of any kind of fault. The sequence
// of draws therefore depends on the seed alone.
type draw struct {
	kind  *kind
	nodes []int         // the masters, or the wires to them
	place int           // the client, for faults of clients and of pairs
	pair  bool          // only the wires of that client
	lasts time.Duration // for kinds that last
	delay time.Duration // of bytes
	cuts  int           // of replies
	lose  bool          // the bytes that a stall has held back
	pause time.Duration // before the next fault
}

// drawFault draws a fault. Most faults strike few masters; now and then one strikes a
// majority.
func drawFault(dice *rand.Rand, kinds []kind, masters, seats int) draw {
	d := draw{
		kind:  drawKind(dice, kinds),
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
	// The wires of one client fail more often in a majority, and for longer. The client is cut
	// off and may be wrong about its locks, while the others continue and can prove it.
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

// The streams of a seed's dice. Stream 0 is for the faults, and the clients' workers have
// streams of their own.
const (
	forgetStream = 1 << 40
	clockStream  = 1 << 41
)

// drawAmnesia draws which masters forget next, one or two, and the pause after that. With five
// masters, a majority is out of quarantine most of the time. Before that, gap stalls as many
// masters as a majority can do without, so that locks granted meanwhile depend on the masters
// that forget.
func drawAmnesia(dice *rand.Rand, masters int) (gap, forget draw) {
	nodes, spare := dice.Perm(masters), (masters-1)/2
	few := 1 + dice.IntN(max(1, min(2, spare)))
	pause := quarantine/4 + upTo(dice, quarantine/2)
	forget = draw{kind: &amnesia, nodes: nodes[:few], pause: 5 * pause / time.Duration(masters)}
	lasts := shortestTTL/2 + upTo(dice, shortestTTL)
	gap = draw{kind: kindOf("stall"), nodes: nodes[masters-spare:], lasts: lasts, lose: true, pause: lasts}
	return gap, forget
}

func drawKind(dice *rand.Rand, kinds []kind) *kind {
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

// upTo returns a duration in [0, d).
func upTo(dice *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(dice.Int64N(int64(d)))
}
