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

// Config says what to simulate. A field that is zero is drawn from the seed.
type Config struct {
	Seed    uint64
	Nodes   int           // masters
	Clients int           // clients, of 1 or more goroutines each
	For     time.Duration // how long there are faults
	Faults  []Kind        // the kinds that may happen; nil: drawn, empty: none
	Without []int         // numbers of planned faults to leave out, for a smaller history
	Fencing Switch        // whether locks have fencing tokens
	Guard   Switch        // whether clients have Config.RestartGuard, which is about as long as the longest ttl
	Fair    Switch        // whether all clients have Config.Fair
	Ways    Switch        // whether clients use ReleaseAfter, handles, nested locks and elections
}

const (
	maxNodes   = 9
	maxClients = 16
	maxFor     = time.Minute
)

// Switch is on or off, or drawn from the seed.
type Switch uint8

const (
	Drawn Switch = iota
	On
	Off
)

// flag returns the switch as an option of the command line.
func (s Switch) flag(name string) string {
	return [...]string{Drawn: "", On: " --" + name, Off: " --" + name + "=false"}[s]
}

// or reports whether the switch is on. A switch that is not given is on in one draw
// of so many.
func (s Switch) or(r *rand.Rand, of int) bool { return s == On || r.IntN(of) == 0 && s == Drawn }

// Command returns the command line that runs the simulation again, with these flags first.
func (c Config) Command(flags ...string) string {
	s := strings.Join(append([]string{"redlock-lab sim"}, flags...), " ") + fmt.Sprintf(" --seed %d", c.Seed)
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
	s += c.Fencing.flag("fencing") + c.Guard.flag("guard") + c.Fair.flag("fair") + c.Ways.flag("ways")
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

// Plan is what a seed decides before the run begins. Random streams of the same seed decide
// the rest while it runs.
type Plan struct {
	Config  Config
	Nodes   int
	For     time.Duration
	Keys    int
	Long    bool // some ttls are longer than anybody waits, so that keys that are left behind show
	Fencing bool
	Guard   time.Duration // Config.RestartGuard of all clients
	Fair    bool          // Config.Fair of all clients
	Ways    bool          // see ways.go
	Crowd   bool          // outside bursts every acquisition waits for its lock, and for longer
	Agree   bool          // where nodes forget, clocks are as close as tokens need
	Kinds   []Kind
	Clients []ClientPlan
	Faults  []FaultPlan
	Trial   *TrialPlan              // nil: none
	known   map[sight]time.Duration // since when a client knows a server, as found in the run
	Spares  int                     // servers that are behind no node at first
	Latency time.Duration           // of all links, on average; 0: each link's is drawn
}

// ClientPlan is how one client is set up.
type ClientPlan struct {
	Rate        float64       // of its clock
	Offset      time.Duration // of its clock
	From, To    time.Duration // when its process runs; To is 0 if it runs until the end
	Drift       clock.Drift
	NodeTimeout time.Duration
	Workers     int             // goroutines that share its Redlock
	TTLs        []time.Duration // the ttls that it asks for
	Careful     bool            // its Redis clients are set up as Open does it; else with go-redis' defaults
	Bursts      bool            // now and then it asks for many locks at once
	Retention   time.Duration   // its Config.FenceRetention
	Reentrant   bool            // its Config.Reentrant
	Single      bool            // its Redis clients have a pool of one connection
}

// FaultPlan is one fault. Its number is its place in Plan.Faults, from 1.
type FaultPlan struct {
	Kind   Kind
	At     time.Duration
	For    time.Duration // 0: over at once
	Client int           // from 0; -1: none in particular
	Node   int           // from 0; -1: none in particular, or all
	Ask    bool          // Partition and Tear: requests are held or torn; Late: requests arrive after their round
	Reply  bool          // Partition and Tear: replies are held or torn
	Closes bool          // Replace: the client releases its locks and closes; else it dies
	Late   time.Duration // LateWake: by how much
	Says   string        // LockOut: the node's answer to every command
	Server int           // takingOver: the server that the address moves to, from 0
	Copied bool          // Spare: the server has a copy of the identity record
	Other  int           // Duplicate: the node whose server it is
	Third  int           // the node that refuses clients during a Duplicate or a grip; -1: none
	Lull   time.Duration // Duplicate: for how long nobody begins anything before it
}

const (
	// longest is the longest ttl that any client asks for, except in long runs.
	longest = 1500 * time.Millisecond
	// veryLong is the longest ttl in long runs, well above patience.
	veryLong = time.Minute
)

// longest returns the longest ttl in the run.
func (p Plan) longest() time.Duration {
	if p.Long {
		return veryLong
	}
	return longest
}

// bursts reports whether some client asks for many locks at once.
func (p Plan) bursts() bool {
	return slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return c.Bursts })
}

// leavesNothing reports whether clean-ups remove every key under these kinds of faults. A
// key may stay until its ttl if its holder died, or if a node executes a command after its
// client gave the connection up, as with a hung node or a partition. A node that comes back
// only after the longest ttl would make a long run very long.
func leavesNothing(kinds []Kind) bool {
	return !slices.ContainsFunc(kinds, func(k Kind) bool {
		return k == Hang || k == Partition || k == AmnesiaOK || k == Replace || slices.Contains(moves, k)
	})
}
