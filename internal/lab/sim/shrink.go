package sim

import (
	"slices"
	"time"
)

// Shrink looks for a smaller run that still shows something: it leaves out faults, and ends
// the run sooner, as long as shows holds. It returns the config of the smallest run found,
// which has been run, or c if c does not show it. simulate is Watched, or does the same.
func Shrink(c Config, simulate func(Config) (Result, error), shows func(Result) bool) (Config, error) {
	r, err := simulate(c)
	if err != nil || !shows(r) {
		return c, err
	}
	try := func(smaller Config) bool {
		run, err := simulate(smaller)
		if err != nil || !shows(run) {
			return false
		}
		c, r = smaller, run
		return true
	}
	// Nothing after the first violation caused it.
	if len(r.Violations) > 0 {
		sooner := c
		sooner.For = (r.Violations[0].At + 10*time.Millisecond).Truncate(time.Millisecond)
		if sooner.For < r.Plan.For {
			try(sooner)
		}
	}
	// Leave out half of the faults at a time, then a quarter, down to single ones.
	for size := (len(r.Plan.Faults) + 1) / 2; size > 0; size /= 2 {
		for {
			gone := false
			left := remaining(r.Plan)
			for at := 0; at < len(left); at += size {
				fewer := c
				fewer.Without = append(slices.Clone(c.Without), left[at:min(at+size, len(left))]...)
				slices.Sort(fewer.Without)
				if try(fewer) {
					gone = true
					break
				}
			}
			if !gone {
				break
			}
		}
	}
	return c, nil
}

// remaining lists the numbers of the faults that are not left out.
func remaining(p Plan) []int {
	var left []int
	for i := range p.Faults {
		if !slices.Contains(p.Config.Without, i+1) {
			left = append(left, i+1)
		}
	}
	return left
}
