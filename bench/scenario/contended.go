package scenario

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// think is the pause of contenders that do something else in between.
const think = 20 * time.Millisecond

// byContenders includes all subjects where each holds the key for longest, which is what locks
// are for. It includes fewer in cells that only complete the picture of this library: those in
// which contenders think, or hold the key for no time at all.
func byContenders() (cells []Cell) {
	for _, pause := range []time.Duration{0, think} {
		for _, hold := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
			names := waiting(result.Quorumlock)
			switch {
			case pause == 0 && hold == 5*time.Millisecond:
				names = subject.Waiting()
			case pause == 0 && hold == time.Millisecond:
				names = waiting(result.Quorumlock, result.Fair, result.Redsync)
			case pause == 0 || hold == 5*time.Millisecond:
				names = waiting(result.Quorumlock, result.Redsync)
			}
			for _, n := range []int{2, 4, 16, 64} {
				c := contended(n)
				c.Hold, c.Think, c.Subjects = hold, pause, names
				cells = append(cells, c)
			}
		}
	}
	apart := contended(16)
	apart.Hold, apart.Processes = 5*time.Millisecond, true
	apart.Subjects = waiting(result.Quorumlock, result.Fair, result.Redsync)
	far := contended(4)
	far.RTT, far.Linked = 10*time.Millisecond, true
	far.Subjects = waiting(result.Quorumlock, result.Fair, result.Redsync)
	together := contended(1000)
	together.OneClient = true
	together.Subjects = waiting(result.Quorumlock, result.Fair, result.Rueidis)
	return append(cells, apart, far, together)
}

func contended(n int) Cell {
	return Cell{Cell: result.Cell{Scenario: result.Contended, Callers: n, Nodes: usual}}
}

// waiting returns those of the names that can wait.
func waiting(names ...result.Subject) []result.Subject {
	can := subject.Waiting()
	return slices.DeleteFunc(names, func(s result.Subject) bool { return !slices.Contains(can, s) })
}

// quickContended reports whether a cell is one of the few that show that contention works.
func quickContended(c Cell) bool {
	switch {
	case c.OneClient, c.Processes, c.RTT > 0:
		return true
	case c.Think > 0:
		return c.Callers == 16 && c.Hold == time.Millisecond
	}
	return c.Callers == 4 && c.Hold == 5*time.Millisecond
}
