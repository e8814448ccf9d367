package contend

import "github.com/quorumlock/redlock/bench/result"

// Sample returns the outcome in the form in which it is stored.
func (o *Outcome) Sample(cell result.Cell, name result.Subject, round int) result.Sample {
	s := result.Sample{
		Cell: cell, Subject: name, Round: round,
		Cycles: o.Acquisitions, PerSecond: o.PerSecond, Errors: o.Errors, Acquire: o.Wait,
		Contention: &result.Contention{
			Alone: o.Alone, Held: o.Held, Gap: o.Gap, Passed: o.Passed, Jain: o.Jain, Longest: o.Wait.Max,
		},
	}
	if o.Acquisitions > 0 {
		s.Contention.Commands = float64(o.Commands) / float64(o.Acquisitions)
	}
	return s
}
