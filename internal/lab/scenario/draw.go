package scenario

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// drawnFor is how long a scenario with Draw has faults.
const drawnFor = 30 * time.Second

// Drawn returns the actions that the seed draws if Draw is set: all clients work by themselves, and now
// and then something fails and is mended. It never draws a fault that Redlock does not promise to survive.
func (s Scenario) Drawn() (actions []Action) {
	if !s.Draw {
		return nil
	}
	for c := range s.Clients {
		actions = append(actions, Action{Verb: Work, Client: c + 1})
	}
	r := rand.New(rand.NewPCG(s.Seed, 0x5ce4a))
	node := func() int { return 1 + r.IntN(s.Nodes) }
	client := func() int { return 1 + r.IntN(s.Clients) }
	between := func(from, to time.Duration) time.Duration {
		return (from + time.Duration(r.Int64N(int64(to-from)))).Truncate(Tick)
	}
	for at := between(500*time.Millisecond, 2*time.Second); at < drawnFor; at += between(500*time.Millisecond, 3*time.Second) {
		var begin, end Action
		switch r.IntN(7) {
		case 0:
			begin = Action{Verb: Kill, Node: node()}
			end = Action{Verb: Restart, Node: begin.Node}
		case 1:
			begin = Action{Verb: Hang, Node: node()}
			end = Action{Verb: Resume, Node: begin.Node}
		case 2:
			begin = Action{Verb: Cut, Client: client(), Node: node()}
		case 3:
			begin = Action{Verb: CutAnswer, Client: client(), Node: node()}
		case 4:
			begin = Action{Verb: Lose, Client: client(), Node: node()}
		case 5:
			begin = Action{Verb: Slow, Node: node(), Arg: between(50*time.Millisecond, 500*time.Millisecond)}
		case 6:
			begin = Action{Verb: Pause, Client: client()}
			end = Action{Verb: Continue, Client: begin.Client}
		}
		if kinds[begin.Verb] == ofLinks {
			end = Action{Verb: Heal, Client: begin.Client, Node: begin.Node}
		}
		begin.At, end.At = at, at+between(500*time.Millisecond, 4*time.Second)
		actions = append(actions, begin, end)
	}
	slices.SortStableFunc(actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	return actions
}
