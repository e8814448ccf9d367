package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Tally counts the outcomes of many runs.
type Tally struct {
	Runs, Asked, Granted, Faults, Events int

	Failed  []Result        // the first few runs with violations
	Excused map[Kind]Counts // runs with excused violations, by the kind that explains them
	All     Counts          // all runs with excused violations
	Drawn   map[Kind]int    // by kind: runs in which it could have explained a violation
}

// Counts counts runs with excused violations.
type Counts struct {
	Runs, Exclusion, Tokens int // with any; with two holders; with a token that went back
	Example                 uint64
}

func (c *Counts) add(seed uint64, excused []Excuse) {
	broken := func(rule string) int {
		if slices.ContainsFunc(excused, func(e Excuse) bool { return e.Rule == rule }) {
			return 1
		}
		return 0
	}
	if c.Runs++; c.Runs == 1 {
		c.Example = seed
	}
	c.Exclusion += broken(history.Exclusion)
	c.Tokens += broken(history.Fencing)
}

// keepFailed bounds the memory that failed runs hold.
const keepFailed = 5

// Add counts a run.
func (t *Tally) Add(r Result) {
	t.Runs++
	t.Asked += r.Asked
	t.Granted += r.Granted
	t.Events += len(r.Events)
	t.Faults += len(r.Plan.Faults) - len(r.Plan.Config.Without)
	if len(r.Violations) > 0 && len(t.Failed) < keepFailed {
		t.Failed = append(t.Failed, r)
	}
	if t.Excused == nil {
		t.Excused, t.Drawn = map[Kind]Counts{}, map[Kind]int{}
	}
	for _, k := range r.Plan.excuses() {
		t.Drawn[k]++
	}
	by := map[Kind][]Excuse{}
	for _, e := range r.Excused {
		by[e.Kind] = append(by[e.Kind], e)
	}
	for k, excused := range by {
		c := t.Excused[k]
		c.add(r.Plan.Config.Seed, excused)
		t.Excused[k] = c
	}
	if len(r.Excused) > 0 {
		t.All.add(r.Plan.Config.Seed, r.Excused)
	}
}

// excuses lists what could explain a violation in a run of this plan.
func (p Plan) excuses() (kinds []Kind) {
	for _, k := range p.Kinds {
		if slices.Contains(Beyond, k) || p.Fencing && slices.Contains(forgetful, k) {
			kinds = append(kinds, k)
		}
	}
	if p.Guard > 0 && anyOf(p.Kinds, []Kind{Excursion, Spare}) {
		kinds = append(kinds, Newcomer)
	}
	if p.Guard > 0 && p.Fencing && anyOf(p.Kinds, forgetful) {
		kinds = append(kinds, ClocksApart)
	}
	return kinds
}

func (t *Tally) String() string {
	s := fmt.Sprintf("%d runs, %d acquisitions, %d locks, %d faults, %d events", t.Runs, t.Asked, t.Granted, t.Faults, t.Events)
	var excused []string
	for _, k := range slices.Sorted(maps.Keys(t.Excused)) {
		c := t.Excused[k]
		excused = append(excused, fmt.Sprintf("%s in %d of %d runs, first with seed %d (%v)", k, c.Runs, t.Drawn[k], c.Example, c))
	}
	if len(excused) > 0 {
		s += "\nbeyond what Redlock promises: " + strings.Join(excused, "; ")
		s += fmt.Sprintf("\nof %d runs, %v", t.Runs, t.All)
	}
	return s
}

func (c Counts) String() string {
	return fmt.Sprintf("%d had two holders, %d a token that went back", c.Exclusion, c.Tokens)
}

// hangs is how much of the machine's time a run may take. A run takes seconds, and with a
// trial minutes if the machine is far too busy. A run that takes longer spins, and no error
// can end it.
const hangs = 10 * time.Minute

// Watched is Run, and panics with the run's command line if the run does not end.
func Watched(c Config) (Result, error) {
	defer time.AfterFunc(hangs, func() {
		panic(fmt.Sprintf("a run does not end: %s", c.Command()))
	}).Stop()
	return Run(c)
}
