package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// drawGuard decides whether clients have the restart guard, and how far their clocks are
// apart where nodes may forget, as tokens rest on the clocks then.
func (p *Plan) drawGuard() {
	seed, often := p.Config.Seed, 5
	if anyOf(p.Kinds, append([]Kind{Amnesia, FailOver, FailBack}, moves[1:]...)) {
		often = 2
	}
	if p.Config.Guard.or(stream(seed, "guard"), often) {
		p.Guard = p.longest()
		if slices.Contains(p.Kinds, Deposed) {
			p.Guard += maxLag + time.Second
		}
		for i := range p.Clients {
			// After a takeover the guard is measured by the client's own clock, with its
			// drift as the margin.
			c := &p.Clients[i]
			c.Rate = min(c.Rate, 1+c.Drift.Factor)
		}
	}
	r := stream(seed, "clocks")
	p.Agree = anyOf(p.Kinds, forgetful) && r.IntN(2) == 0
	if p.Agree {
		for i := range p.Clients {
			p.Clients[i].Offset = between(r, -agreed, agreed)
		}
	}
}

// agreed bounds how far such clocks are from the true time at first. They agree better than
// the guard demands, even after running for some seconds at their own speeds.
const agreed = 300 * time.Millisecond

// succeed gives each client that is replaced a successor, which differs in its clock alone.
// Later faults of the client hit the successor. If the replacement is left out, the
// successor never runs, and the others keep their numbers.
func (p *Plan) succeed() {
	now := make([]int, len(p.Clients)) // the client that is in each one's place
	for i := range now {
		now[i] = i
	}
	order := make([]*FaultPlan, len(p.Faults))
	leftOut := map[*FaultPlan]bool{}
	for i := range p.Faults {
		order[i] = &p.Faults[i]
		leftOut[order[i]] = slices.Contains(p.Config.Without, i+1)
	}
	slices.SortStableFunc(order, func(a, b *FaultPlan) int { return cmp.Compare(a.At, b.At) })
	for _, f := range order {
		if f.Client < 0 {
			continue
		}
		place := f.Client
		f.Client = now[place]
		if f.Kind != Replace {
			continue
		}
		next := p.Clients[f.Client]
		next.From, next.To = f.At+f.For, 0
		most := 6 * time.Hour
		if p.Agree {
			most = agreed
		}
		next.Offset = between(stream(p.Config.Seed, "successor", len(p.Clients)), -most, most)
		if leftOut[f] {
			next.From = history.Never
		} else {
			p.Clients[f.Client].To = f.At
			now[place] = len(p.Clients)
		}
		p.Clients = append(p.Clients, next)
	}
}

// runs reports whether the client's process ever begins.
func (c ClientPlan) runs() bool { return c.From != history.Never }

// stays reports whether the client's process lives until the end.
func (c ClientPlan) stays() bool { return c.runs() && c.To == 0 }
