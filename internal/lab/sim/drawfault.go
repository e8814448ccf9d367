package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// drawFaults plans the faults, one group of kinds after the other.
func (p *Plan) drawFaults() {
	free := map[string]time.Duration{}
	first := butFor(p.Kinds, append([]Kind{Cancel, SlowClient}, apart...)) // the clients act out those two themselves
	p.drawFaultsOf(first, stream(p.Config.Seed, "faults"), 40*time.Millisecond, 300*time.Millisecond, free)
	more := butFor(p.Kinds, slices.Concat(butFor(p.Kinds, apart), []Kind{LockOut}, wakes, moves, Trials))
	p.drawFaultsOf(more, stream(p.Config.Seed, "more faults"), 150*time.Millisecond, 900*time.Millisecond, free)
	wake := butFor(p.Kinds, butFor(p.Kinds, wakes))
	p.drawFaultsOf(wake, stream(p.Config.Seed, "wake faults"), 60*time.Millisecond, 400*time.Millisecond, free)
	move := butFor(p.Kinds, butFor(p.Kinds, moves))
	p.drawFaultsOf(move, stream(p.Config.Seed, "move faults"), 200*time.Millisecond, 1200*time.Millisecond, free)
	if slices.Contains(p.Kinds, LockOut) {
		p.drawFaultsOf([]Kind{LockOut}, stream(p.Config.Seed, "lock-outs"), 100*time.Millisecond, 600*time.Millisecond, free)
	}
}

// drawFaultsOf plans faults of some kinds at random instants, on average a pace apart that
// is drawn between least and most. Faults of one target do not overlap, so that the end of
// one is not the end of another: free holds when each target may be hit again.
func (p *Plan) drawFaultsOf(kinds []Kind, r *rand.Rand, least, most time.Duration, free map[string]time.Duration) {
	if len(kinds) == 0 {
		return
	}
	type span struct{ from, to time.Duration }
	taken := map[string][]span{} // by faults that were planned before
	for _, f := range p.Faults {
		target := f.target(0)
		taken[target] = append(taken[target], span{f.At, f.At + f.For})
	}
	pace := between(r, least, most)
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64()*float64(pace)) + 1
		if at >= p.For {
			return
		}
		f := FaultPlan{Kind: pick(r, kinds...), At: at, Client: r.IntN(len(p.Clients)), Node: r.IntN(p.Nodes)}
		target := f.draw(r, p.Nodes)
		if (f.Kind == FailBack || f.Kind == LateInfo) && slices.Contains(p.Kinds, SlowClient) {
			f.For += believed // enough by the slow client's clock
		}
		meets := slices.ContainsFunc(taken[target], func(s span) bool { return at <= s.to && s.from <= at+f.For })
		if at >= free[target] && !meets {
			free[target] = at + f.For + time.Millisecond
			p.Faults = append(p.Faults, f)
		}
	}
}

// believed is longer than a client relies on what the server of a live connection said it
// was (one second). A demoted server loses its memory no sooner: by default, a
// replica waits longer before it loads its master's data.
const believed = 1100 * time.Millisecond

// draw decides how long the fault lasts and what it hits, and returns the target's name.
func (f *FaultPlan) draw(r *rand.Rand, nodes int) (target string) {
	f.For = min(time.Duration(r.ExpFloat64()*float64(400*time.Millisecond)), 2*time.Second)
	switch f.Kind {
	case AmnesiaOK:
		f.For += longest
	case Amnesia, FailOver:
		f.For = between(r, time.Millisecond, 50*time.Millisecond)
	case FailBack:
		f.For = believed + between(r, 0, 500*time.Millisecond)
	case Replace:
		f.For = between(r, time.Millisecond, 300*time.Millisecond)
		f.Closes = r.IntN(2) == 0
	case Pause:
		f.For = between(r, 20*time.Millisecond, 2*longest)
	case Break, Flush:
		f.For = 0
	case LateWake:
		f.Late = between(r, time.Millisecond, 2*time.Second)
	case LockOut:
		f.Says = pick(r, lockOuts...)
	case Deafen:
		if r.IntN(2) == 0 {
			f.For = 0
		}
	case JumpBack, JumpAhead:
		f.For = between(r, 50*time.Millisecond, longest) // how far the clock jumps
	}
	if slices.Contains(moves, f.Kind) {
		f.drawMove(r, nodes)
		f.Client = -1
		return f.target(0)
	}
	switch f.Kind {
	case Hang, Crash, AmnesiaOK, Amnesia, FailOver, FailBack, LoseWake, LateWake, Deafen, LockOut:
		f.Client = -1
	case Flush, JumpBack, JumpAhead:
		f.Client = -1
		return f.target(r.Uint64())
	case Pause, Replace:
		f.Node = -1
	default:
		way := r.IntN(3)
		f.Ask, f.Reply = way != 1, way != 2
		if r.IntN(4) == 0 {
			f.Node = -1 // all of the client's paths at once
		}
	}
	return f.target(0)
}

// target names what a fault hits. Faults that may overlap on one target have the number in
// the name.
func (f *FaultPlan) target(number uint64) string {
	switch f.Kind {
	case Hang, Crash, AmnesiaOK, Amnesia, FailOver, FailBack, Duplicate, EmptyPromotion, Excursion, Spare, Deposed, DeposedLong, LateInfo:
		return fmt.Sprint("node ", f.Node)
	case Flush, JumpBack, JumpAhead:
		return fmt.Sprint(f.Kind, number)
	case Pause:
		return fmt.Sprint("client ", f.Client)
	}
	return fmt.Sprint(f.Kind, f.Client, f.Node)
}
