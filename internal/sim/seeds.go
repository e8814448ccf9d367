package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Tally counts what many runs came to.
type Tally struct {
	Runs, Asked, Granted, Faults, Events int

	Failed  []Result     // runs with violations, the first few of them
	Excused map[Kind]int // runs with violations that a fault explains, by its kind
	Example map[Kind]uint64
	Beyond  map[Kind]int // runs in which such faults were drawn
}

// keepFailed bounds the memory that failed runs hold.
const keepFailed = 5

// Add counts a run in.
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
		t.Excused, t.Example, t.Beyond = map[Kind]int{}, map[Kind]uint64{}, map[Kind]int{}
	}
	for _, k := range Beyond {
		if slices.Contains(r.Plan.Kinds, k) {
			t.Beyond[k]++
		}
		if slices.ContainsFunc(r.Excused, func(e Excuse) bool { return e.Kind == k }) {
			if t.Excused[k]++; t.Excused[k] == 1 {
				t.Example[k] = r.Plan.Config.Seed
			}
		}
	}
}

func (t *Tally) String() string {
	s := fmt.Sprintf("%d runs, %d acquisitions, %d locks, %d faults, %d events", t.Runs, t.Asked, t.Granted, t.Faults, t.Events)
	var excused []string
	for _, k := range slices.Sorted(maps.Keys(t.Excused)) {
		excused = append(excused, fmt.Sprintf("%s in %d of %d runs, first with seed %d", k, t.Excused[k], t.Beyond[k], t.Example[k]))
	}
	if len(excused) > 0 {
		s += "\nbeyond what Redlock promises: " + strings.Join(excused, "; ")
	}
	return s
}

// hangs is how long a run may take of the machine's time. It takes a second or two
// on a loaded machine; one that takes so long spins, and no error can leave it.
const hangs = 3 * time.Minute

// Watched is Run, and panics with the seed if the run does not come to an end.
func Watched(c Config) (Result, error) {
	defer time.AfterFunc(hangs, func() {
		panic(fmt.Sprintf("a run does not end: %s", c.Command()))
	}).Stop()
	return Run(c)
}
