package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/quorum"
)

// The kinds of trials: what ails some clients for a long time while the others are well.
const (
	SlowLink   Kind = "slow-link"    // one client's round trips take longer than its NodeTimeout
	Minority   Kind = "minority"     // one client reaches a minority of the nodes
	HalfCutOff Kind = "half-cut-off" // half of the clients reach a minority of the nodes
	Foreign    Kind = "foreign"      // clients of another library take the key too, and wake nobody
	Frozen     Kind = "frozen"       // several waiters freeze, and their connections stay up
	DaysApart  Kind = "days-apart"   // some clients' clocks are more than a day off
)

// Trials lists the kinds of trials. A run has at most one trial, after everything else.
var Trials = []Kind{SlowLink, Minority, HalfCutOff, Foreign, Frozen, DaysApart}

// undrawn lists the kinds of trials that no run draws by itself, as each takes ten seconds
// of processor time or more. --faults can name them.
var undrawn = []Kind{SlowLink, Minority, HalfCutOff, Foreign}

// TrialPlan is the plan of a trial. Its clients contend for a key in two parts of the same
// length: without what ails some of them, as the control, and then with it.
type TrialPlan struct {
	Kind  Kind
	For   time.Duration // the length of each part
	First int           // the index of its first client; its clients are the last of the plan
	Well  int           // how many clients are well; those behind them are the sick
	Hold  time.Duration // how long the key is held, on average
	Think time.Duration // how long a client waits before it asks again, on average

	Link    time.Duration // slow-link: what a message takes, one way
	Able    bool          // slow-link: the NodeTimeout is longer than a round trip
	Reach   int           // minority and half-cut-off: how many nodes a sick client reaches
	Down    int           // minority: the node that refuses everybody, in both parts; -1: none
	Refused bool          // minority and half-cut-off: connections are refused, and not just silent
	Beat    bool          // foreign: the key is taken at exact intervals of Hold and Think
}

// drawTrialKind adds a kind of trial to one of 32 runs, as a trial takes as long as ten
// runs.
func (p *Plan) drawTrialKind() {
	r := stream(p.Config.Seed, "trial kind")
	if drawn := butFor(Trials, undrawn); len(drawn) > 0 && r.IntN(32) == 0 {
		p.Kinds = append(p.Kinds, pick(r, drawn...))
		slices.Sort(p.Kinds)
	}
}

// drawTrial plans a trial of one of the run's kinds. With a single node there is no
// minority that a client could reach.
func (p *Plan) drawTrial() {
	kinds := slices.DeleteFunc(slices.Clone(p.Kinds), func(k Kind) bool {
		return !slices.Contains(Trials, k) || p.Nodes == 1 && (k == Minority || k == HalfCutOff)
	})
	if len(kinds) == 0 {
		return
	}
	r := stream(p.Config.Seed, "trial")
	t := &TrialPlan{Kind: pick(r, kinds...), First: len(p.Clients), Well: 3, Down: -1, Think: 5 * time.Millisecond}
	t.Hold = pick(r, 20*time.Millisecond, 100*time.Millisecond, 300*time.Millisecond)
	t.For = map[time.Duration]time.Duration{20 * time.Millisecond: 20 * time.Second, 100 * time.Millisecond: 40 * time.Second, 300 * time.Millisecond: time.Minute}[t.Hold]
	sick := 1
	timeout := pick(r, 50*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond)
	offset := func() time.Duration { return between(r, -6*time.Hour, 6*time.Hour) }
	switch t.Kind {
	case SlowLink:
		timeout = 200 * time.Millisecond
		t.Link = between(r, 110*time.Millisecond, 200*time.Millisecond)
		t.Able = r.IntN(4) == 0
	case Minority, HalfCutOff:
		t.Reach = quorum.Size(p.Nodes) - 1
		t.Refused = r.IntN(2) == 0
		if t.Kind == HalfCutOff {
			sick = t.Well
		} else if p.Nodes > 2 && r.IntN(2) == 0 {
			t.Down = r.IntN(p.Nodes)
		}
	case Foreign:
		t.drawForeign(r)
		sick = pick(r, 1, 2, 2, 6)
		if t.Beat {
			sick = 1
		}
	case Frozen:
		sick = 4 + r.IntN(9)
		t.For = time.Minute
	case DaysApart:
		sick = 1 + r.IntN(2)
	}
	for i := range t.Well + sick {
		c := ClientPlan{
			Rate:        1 + (r.Float64()-0.5)*clock.DefaultDrift.Factor,
			Offset:      offset(),
			From:        history.Never,
			Drift:       clock.DefaultDrift,
			NodeTimeout: timeout,
			Careful:     r.IntN(2) == 0,
		}
		if i >= t.Well {
			switch {
			case t.Kind == DaysApart:
				c.Offset = days(r)
			case t.Able:
				c.NodeTimeout = 10 * t.Link // also if a try has to wait for another batch
			}
		}
		p.Clients = append(p.Clients, c)
	}
	p.Trial = t
}

// drawForeign draws how many clients contend with those of another library, and how.
func (t *TrialPlan) drawForeign(r *rand.Rand) {
	t.Well = 1 + r.IntN(2)
	t.For = 2 * time.Minute
	t.Hold, t.Think = 300*time.Millisecond, 300*time.Millisecond
	if t.Beat = r.IntN(3) == 0; t.Beat {
		t.Hold, t.Think = 400*time.Millisecond, 100*time.Millisecond
	}
}

// days draws how far a clock is off: a little more than a day, or years.
func days(r *rand.Rand) time.Duration {
	const year = 365 * 24 * time.Hour
	off := pick(r, 25*time.Hour, 25*time.Hour, 26*time.Hour+between(r, 0, 72*time.Hour), year, 20*year)
	if r.IntN(2) == 0 {
		off = -off
	}
	return off
}

func (t *TrialPlan) String() string {
	s := fmt.Sprintf("%s with %d clients well, for %v", t.Kind, t.Well, t.For)
	switch t.Kind {
	case SlowLink:
		s += fmt.Sprintf(": a message takes %v", t.Link)
		if t.Able {
			s += ", which is in time"
		}
	case Minority, HalfCutOff:
		s += fmt.Sprintf(": each of the sick reaches %d", t.Reach)
		if t.Down >= 0 {
			s += fmt.Sprintf(", and node %d is down", t.Down+1)
		}
	}
	return s
}
