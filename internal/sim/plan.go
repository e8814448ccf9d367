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
	Fencing Switch        // locks have fencing tokens
	Guard   Switch        // Config.RestartGuard is as long as the longest ttl
	Fair    Switch        // Config.Fair of all clients
}

const (
	maxNodes   = 9
	maxClients = 16
	maxFor     = time.Minute
)

// Switch is on or off, or drawn.
type Switch uint8

const (
	Drawn Switch = iota
	On
	Off
)

// flag is how the command line says it.
func (s Switch) flag(name string) string {
	return [...]string{Drawn: "", On: " --" + name, Off: " --" + name + "=false"}[s]
}

// or draws it, one time in so many, if it is not given.
func (s Switch) or(r *rand.Rand, of int) bool { return s == On || r.IntN(of) == 0 && s == Drawn }

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
	s += c.Fencing.flag("fencing") + c.Guard.flag("guard") + c.Fair.flag("fair")
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
	Fencing bool
	Guard   time.Duration // Config.RestartGuard of all clients
	Fair    bool          // Config.Fair of all clients
	Crowd   bool          // nobody only tries: whoever wants a lock waits for it, and for long
	Agree   bool          // clocks are as close as tokens need where nodes forget
	Kinds   []Kind
	Clients []ClientPlan
	Faults  []FaultPlan
	Trial   *TrialPlan              // nil: none
	known   map[sight]time.Duration // since when, as the run showed
	Spares  int                     // servers that are no node's at first
}

// ClientPlan is what kind of client one is.
type ClientPlan struct {
	Rate        float64       // of its clock
	Offset      time.Duration // of its clock
	From, To    time.Duration // when its process runs; To is 0 for one that nobody replaces
	Drift       clock.Drift
	NodeTimeout time.Duration
	Workers     int             // goroutines that share its Redlock
	TTLs        []time.Duration // what it asks for
	Careful     bool            // its Redis clients are set up as Open does; else as go-redis does
	Bursts      bool            // now and then it asks for many locks at once
	Retention   time.Duration   // its Config.FenceRetention
	Single      bool            // its Redis clients have a pool of one connection
}

// FaultPlan is one fault. Its number is its place in Plan.Faults, from 1.
type FaultPlan struct {
	Kind   Kind
	At     time.Duration
	For    time.Duration // 0: over at once
	Client int           // from 0; -1: none in particular
	Node   int           // from 0; -1: none in particular, or all
	Ask    bool          // a partition: requests are held; torn: requests are; late: later than the round
	Reply  bool          // a partition: replies are held; torn: replies are
	Closes bool          // replaced: it releases what it has, and closes; else it dies
	Late   time.Duration // late wake-ups: by how much
	Says   string        // a lock-out: the node's answer to every command
	Server int           // an address moves: to which server, from 0
	Copied bool          // it moves to a spare: that has a copy of the marker
	Other  int           // a duplicate: whose server it is
	Third  int           // a duplicate: the node that refuses everybody; -1: none
	Lull   time.Duration // a duplicate: for how long nobody begins anything before
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

// bursts tells that some client asks for many locks at once.
func (p Plan) bursts() bool {
	return slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return c.Bursts })
}

// leavesNothing tells that nothing can stay behind in spite of all clean-ups. What a
// node executes after the client has given the connection up, which a hung node and
// a partition make possible, can, and what its dead had; so there a key may live until
// its ttl. A node that comes back after the longest ttl would make a long run very long.
func leavesNothing(kinds []Kind) bool {
	return !slices.ContainsFunc(kinds, func(k Kind) bool {
		return k == Hang || k == Partition || k == AmnesiaOK || k == Replace || slices.Contains(moves, k)
	})
}
