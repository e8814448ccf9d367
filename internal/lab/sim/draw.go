package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// stream returns the random source of one part of the run. No part's draws change
// another's.
func stream(seed uint64, part string, numbers ...int) *rand.Rand {
	h := uint64(14695981039346656037) // FNV-1a
	add := func(b uint64) { h = (h ^ b) * 1099511628211 }
	for _, c := range []byte(part) {
		add(uint64(c))
	}
	for _, n := range numbers {
		add(uint64(n) + 257)
	}
	return rand.New(rand.NewPCG(seed, h))
}

// Draw draws the plan. It fails if the config cannot be simulated.
func Draw(c Config) (Plan, error) {
	if err := c.validate(); err != nil {
		return Plan{}, err
	}
	p := Plan{Config: c, Nodes: c.Nodes, For: c.For, Kinds: c.Faults}
	r := stream(c.Seed, "size")
	nodes := pick(r, 1, 2, 3, 3, 3, 4, 5, 5, 5, 7)
	clients := pick(r, 2, 2, 3, 3, 3, 4, 4, 5, 6, 8)
	span := between(r, 1500*time.Millisecond, 3500*time.Millisecond)
	p.Keys = pick(r, 1, 1, 1, 2)
	if p.Nodes == 0 {
		p.Nodes = nodes
	}
	if c.Clients > 0 {
		clients = c.Clients
	}
	if p.For == 0 {
		p.For = span.Truncate(time.Millisecond)
	}
	if p.Kinds == nil {
		p.Kinds = drawKinds(stream(c.Seed, "kinds"), stream(c.Seed, "more kinds"), stream(c.Seed, "wake kinds"), stream(c.Seed, "move kinds"))
		p.drawLockOut()
		p.drawTrialKind()
	}
	if c.For == 0 && anyOf(p.Kinds, takingOver) {
		p.For += 2 * longest // a server that took over is in quarantine for a while
	}
	p.Long = leavesNothing(p.Kinds) && r.IntN(4) > 0
	for i := range clients {
		client := drawClient(stream(c.Seed, "client", i), slices.Contains(p.Kinds, SlowClient))
		if p.Long {
			client.TTLs = append(client.TTLs, veryLong)
		}
		p.Clients = append(p.Clients, client)
	}
	if r := stream(c.Seed, "burst"); r.IntN(3) == 0 {
		for i := range p.Clients {
			p.Clients[i].Bursts = r.IntN(4) > 0
		}
	}
	if r := stream(c.Seed, "pools"); slices.Contains(p.Kinds, Duplicate) {
		for i := range p.Clients {
			p.Clients[i].Single = r.IntN(3) == 0
		}
	}
	p.Fencing = c.Fencing.or(stream(c.Seed, "fencing"), 2)
	p.Fair = c.Fair.or(stream(c.Seed, "fair"), 3)
	p.drawWays()
	p.Crowd = stream(c.Seed, "crowd").IntN(3) == 0
	p.drawRetentions()
	p.drawGuard()
	p.drawFaults()
	p.drawSpares()
	for _, n := range c.Without {
		if n < 1 || n > len(p.Faults) {
			return Plan{}, fmt.Errorf("without has %d, but faults are numbered 1 to %d", n, len(p.Faults))
		}
	}
	p.succeed()
	p.newcomers()
	p.drawTrial()
	return p, nil
}

// drawKinds draws the kinds of faults. It switches half of most kinds off: faults hide each
// other, so a run with fewer kinds goes deeper. At least one run in six gets a kind that is
// beyond what Redlock promises.
func drawKinds(r, more, wake, move *rand.Rand) []Kind {
	kinds := []Kind{}
	long := r.IntN(3) == 0 // see leavesNothing
	for _, k := range butFor(Within, apart) {
		if r.IntN(2) == 0 && (!long || leavesNothing([]Kind{k})) {
			kinds = append(kinds, k)
		}
	}
	if r.IntN(6) == 0 {
		kinds = append(kinds, pick(r, butFor(Beyond, apart)...))
	}
	// Add Replace to few of the runs that would leave nothing behind.
	often := 2
	if leavesNothing(kinds) {
		often = 6
	}
	if more.IntN(often) == 0 {
		kinds = append(kinds, Replace)
	}
	if more.IntN(8) == 0 && !slices.Contains(kinds, SlowClient) {
		kinds = append(kinds, pick(more, FailOver, FailBack))
	}
	for _, k := range wakes {
		if wake.IntN(5) < 2 {
			kinds = append(kinds, k)
		}
	}
	if often == 2 && move.IntN(2) == 0 {
		kinds = append(kinds, Duplicate)
	}
	if move.IntN(6) == 0 && !slices.Contains(kinds, SlowClient) {
		kinds = append(kinds, pick(move, moves[1:]...))
	}
	slices.Sort(kinds)
	return kinds
}

func drawClient(r *rand.Rand, slow bool) ClientPlan {
	c := ClientPlan{
		Offset:      between(r, -6*time.Hour, 6*time.Hour),
		Drift:       pick(r, clock.DefaultDrift, clock.DefaultDrift, clock.Drift{Factor: 0.05, Floor: time.Millisecond}, clock.Drift{Floor: 1}),
		NodeTimeout: pick(r, 30*time.Millisecond, 60*time.Millisecond, 120*time.Millisecond, 200*time.Millisecond),
		Workers:     pick(r, 1, 1, 2, 3),
		Careful:     r.IntN(2) == 0,
	}
	// A clock is at most as slow as the drift allows for, and at most twice as far too fast.
	c.Rate = 1 - c.Drift.Factor + r.Float64()*3*c.Drift.Factor
	if r.IntN(4) == 0 {
		c.Rate = 1 - c.Drift.Factor
	}
	if ill := 0.5 + 0.4*r.Float64(); slow && r.IntN(2) == 0 {
		c.Rate = ill
	}
	for range 3 {
		c.TTLs = append(c.TTLs, pick(r, 50*time.Millisecond, 100*time.Millisecond, 250*time.Millisecond+900*time.Microsecond, 500*time.Millisecond+999*time.Microsecond, longest))
	}
	return c
}

// pauses reports whether a fault makes the client stand still.
func (p Plan) pauses(client int) bool {
	return slices.ContainsFunc(p.Faults, func(f FaultPlan) bool { return f.Kind == Pause && f.Client == client })
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// between draws to the nanosecond, so that no two things happen at the same instant.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}
