package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/clock"
)

// Config says what to simulate. What is zero is drawn from the seed.
type Config struct {
	Seed    uint64
	Nodes   int           // masters
	Clients int           // clients, 1 or more goroutines each
	For     time.Duration // how long there are faults
	Faults  []Kind        // the kinds that may happen; nil: drawn, empty: none
	Without []int         // numbers of planned faults to leave out, for a smaller history
}

const (
	maxNodes   = 9
	maxClients = 16
	maxFor     = time.Minute
)

// Command is the command line that runs the simulation again.
func (c Config) Command() string {
	s := fmt.Sprintf("redlock sim --seed %d", c.Seed)
	if c.Nodes > 0 {
		s += fmt.Sprintf(" --nodes %d", c.Nodes)
	}
	if c.Clients > 0 {
		s += fmt.Sprintf(" --clients %d", c.Clients)
	}
	if c.For > 0 {
		s += fmt.Sprintf(" --for %v", c.For)
	}
	if c.Faults != nil {
		list := names(c.Faults)
		if list == "" {
			list = "none"
		}
		s += " --faults " + list
	}
	if len(c.Without) > 0 {
		list := make([]string, len(c.Without))
		for i, n := range c.Without {
			list[i] = strconv.Itoa(n)
		}
		s += " --without " + strings.Join(list, ",")
	}
	return s
}

func (c Config) validate() error {
	switch {
	case c.Nodes < 0 || c.Nodes > maxNodes:
		return fmt.Errorf("nodes is %d, want 1 to %d, or 0 to draw it", c.Nodes, maxNodes)
	case c.Clients < 0 || c.Clients > maxClients:
		return fmt.Errorf("clients is %d, want 1 to %d, or 0 to draw it", c.Clients, maxClients)
	case c.For < 0 || c.For > maxFor:
		return fmt.Errorf("for is %v, want at most %v, or 0 to draw it", c.For, maxFor)
	}
	return nil
}

// Plan is what a seed decides before the run begins. What happens in the run is
// decided by the same seed, but as things come.
type Plan struct {
	Config  Config
	Nodes   int
	For     time.Duration
	Keys    int
	Long    bool // some ttls are longer than anybody waits, so that what is left behind shows
	Kinds   []Kind
	Clients []ClientPlan
	Faults  []FaultPlan
}

// ClientPlan is what kind of client one is.
type ClientPlan struct {
	Rate        float64       // of its clock
	Offset      time.Duration // of its clock
	Drift       clock.Drift
	NodeTimeout time.Duration
	Workers     int             // goroutines that share its Redlock
	TTLs        []time.Duration // what it asks for
	Careful     bool            // its Redis clients are set up as Open does; else as go-redis does
}

// FaultPlan is one fault. Its number is its place in Plan.Faults, from 1.
type FaultPlan struct {
	Kind   Kind
	At     time.Duration
	For    time.Duration // 0: over at once
	Client int           // from 0; -1: none in particular
	Node   int           // from 0; -1: none in particular, or all
	Ask    bool          // a partition: requests are held; late: later than the round
	Reply  bool          // a partition: replies are held
}

// stream is the source of one part of the run. Each part has its own, so that what
// one part draws does not change another's.
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

const (
	// longest is the longest ttl that any client asks for, but in long runs.
	longest = 1500 * time.Millisecond
	// veryLong is that of long runs, well above patience.
	veryLong = time.Minute
)

// longest is the longest ttl in the run.
func (p Plan) longest() time.Duration {
	if p.Long {
		return veryLong
	}
	return longest
}

// leavesNothing tells that nothing can stay behind in spite of all clean-ups. What a
// node executes after the client has given the connection up, which a hung node and
// a partition make possible, can; so there a key may live until its ttl. A node that
// comes back after the longest ttl would make a long run very long.
func leavesNothing(kinds []Kind) bool {
	return !slices.ContainsFunc(kinds, func(k Kind) bool { return k == Hang || k == Partition || k == AmnesiaOK })
}

// Draw makes the plan.
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
		p.Kinds = drawKinds(stream(c.Seed, "kinds"))
	}
	p.Long = leavesNothing(p.Kinds) && r.IntN(4) > 0
	for i := range clients {
		client := drawClient(stream(c.Seed, "client", i), slices.Contains(p.Kinds, SlowClient))
		if p.Long {
			client.TTLs = append(client.TTLs, veryLong)
		}
		p.Clients = append(p.Clients, client)
	}
	p.Faults = drawFaults(stream(c.Seed, "faults"), p)
	for _, n := range c.Without {
		if n < 1 || n > len(p.Faults) {
			return Plan{}, fmt.Errorf("without has %d, but faults are numbered 1 to %d", n, len(p.Faults))
		}
	}
	return p, nil
}

// drawKinds switches half of the kinds off: faults hide each other, so a run with
// fewer kinds goes deeper. One run in six is beyond what Redlock promises.
func drawKinds(r *rand.Rand) []Kind {
	kinds := []Kind{}
	long := r.IntN(3) == 0 // see leavesNothing
	for _, k := range Within {
		if r.IntN(2) == 0 && (!long || leavesNothing([]Kind{k})) {
			kinds = append(kinds, k)
		}
	}
	if r.IntN(6) == 0 {
		kinds = append(kinds, pick(r, Beyond...))
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
	// From as slow as the drift allows for to twice that much too fast.
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

// drawFaults plans faults at random instants. Two faults of one kind do not meet on
// one target, so that the end of one is not the end of the other.
func drawFaults(r *rand.Rand, p Plan) []FaultPlan {
	var kinds []Kind
	for _, k := range p.Kinds {
		if k != Cancel && k != SlowClient { // those are in the clients
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	var faults []FaultPlan
	free := map[string]time.Duration{}
	pace := between(r, 40*time.Millisecond, 300*time.Millisecond) // between faults, on average
	for at := time.Duration(0); ; {
		at += time.Duration(r.ExpFloat64()*float64(pace)) + 1
		f := FaultPlan{Kind: pick(r, kinds...), At: at, Client: r.IntN(len(p.Clients)), Node: r.IntN(p.Nodes)}
		f.For = time.Duration(r.ExpFloat64() * float64(400*time.Millisecond))
		way := r.IntN(3)
		f.Ask, f.Reply = way != 1, way != 2
		if at >= p.For {
			return faults
		}
		wide := r.IntN(4) == 0
		group := string(f.Kind)
		switch f.Kind {
		case Hang, Crash, AmnesiaOK, Amnesia:
			group, f.Client = "node", -1
		case Flush, JumpBack, JumpAhead:
			f.Client = -1
		case Pause:
			f.Node = -1
			f.For = between(r, 20*time.Millisecond, 2*longest)
		}
		switch f.Kind {
		case AmnesiaOK:
			f.For += longest + time.Millisecond
		case Amnesia:
			f.For = between(r, time.Millisecond, 50*time.Millisecond)
		case JumpBack, JumpAhead:
			f.For = between(r, 50*time.Millisecond, longest)
		case Break, Flush:
			f.For = 0
		case Pause:
		default:
			f.For = min(f.For, 2*time.Second)
		}
		if f.Client >= 0 {
			group = fmt.Sprint(f.Kind, " of ", f.Client)
			if wide {
				f.Node = -1 // all of the client's paths at once
			}
		}
		group = fmt.Sprint(group, " at ", f.Node)
		if at < free[group] {
			continue
		}
		if f.Kind != JumpBack && f.Kind != JumpAhead {
			free[group] = at + f.For + time.Millisecond
		}
		faults = append(faults, f)
	}
}

// pauses tells that the client will stand still at some time.
func (p Plan) pauses(client int) bool {
	return slices.ContainsFunc(p.Faults, func(f FaultPlan) bool { return f.Kind == Pause && f.Client == client })
}

func pick[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// between draws to the nanosecond: no two things happen at the same instant.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}
