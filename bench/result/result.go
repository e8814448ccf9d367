// Package result holds the figures of a comparison. They are stored as JSON, and package
// report makes the page from them.
package result

import "time"

// Run is one comparison.
type Run struct {
	When     time.Time
	Command  string // how to repeat it, as typed in the project's root
	Quick    bool   // too short for its figures to mean anything
	Machine  Machine
	Samples  []Sample
	Renewals []Renewal
	Idles    []Idle `json:",omitempty"`
}

// Machine describes the machine of a comparison, without anything that identifies it.
type Machine struct {
	CPU        string // model name of the processor
	Cores      int    // that the process may use
	MemoryGiB  float64
	OS, Kernel string
	Go, Redis  string            // versions
	Modules    map[string]string // versions of the compared modules, by module path
}

// Subject is the name of a subject.
type Subject string

const (
	Quorumlock Subject = "quorumlock"
	Fenced     Subject = "quorumlock, fencing"
	Guarded    Subject = "quorumlock, restart guard"
	Both       Subject = "quorumlock, both"
	Fair       Subject = "quorumlock, fair"
	Redsync    Subject = "redsync"            // its defaults
	RedsyncFF  Subject = "redsync, fail-fast" // leaves at the majority
	Redislock  Subject = "redislock, one node"
	Rueidis    Subject = "rueidislock, its own model"
	Floor      Subject = "floor"   // pre-encoded requests on plain sockets, one caller
	Ceiling    Subject = "ceiling" // deep raw pipelines to all masters, no lock logic
)

// Scenario is a series of measurements in which one thing varies.
type Scenario string

const (
	Callers    Scenario = "callers"    // 1, 16, 128, 1024 of them, five healthy masters
	Nodes      Scenario = "nodes"      // 1, 3, 5, 7, 9 masters
	Faults     Scenario = "faults"     // some of five masters hang or refuse
	Links      Scenario = "links"      // round trips of 1, 10, 50 ms
	Guarantees Scenario = "guarantees" // fencing and the restart guard, near and on links
	Contended  Scenario = "contended"  // all callers want one key
)

// Cell is one point of a scenario.
type Cell struct {
	Scenario Scenario
	Callers  int
	Nodes    int
	Hung     int           // masters that accept and never answer
	Refused  int           // masters that refuse connections
	RTT      time.Duration // of the links; 0 is the loopback's own

	// The fields below are for cells in which all callers want one key.
	Hold      time.Duration `json:",omitzero"` // how long each caller holds it
	Think     time.Duration `json:",omitzero"` // the pause before each caller wants it again
	OneClient bool          `json:",omitzero"` // callers share one client; otherwise each has its own
	Processes bool          `json:",omitzero"` // each caller is a process
}

// Sample is one turn of one subject in one cell: some seconds, after a warm-up. In a round,
// all subjects of a cell have their turns one after the other, so that figures of one round
// may be divided by each other.
type Sample struct {
	Cell
	Subject Subject
	Round   int

	Cycles    int     // acquisitions with their releases
	PerSecond float64 // cycles
	Errors    int     // cycles that failed; a subject that cannot do it has only these

	// A cycle is the acquisition and the release. Acquire is the latency of the acquisition
	// alone.
	Cycle, Acquire Latency
	Allocs         float64 // heap objects of the whole process for each cycle; 0 if not counted

	Contention *Contention `json:",omitempty"` // set if all callers want one key
}

// Latency is a distribution.
type Latency struct {
	P50, P90, P99, P999, Max time.Duration
	// Quantiles are the 0th, 1st, …, 100th percentile, for plots; only for acquisitions.
	Quantiles []time.Duration
}

// Renewal is one measurement of locks that are only kept alive.
type Renewal struct {
	Locks       int
	TTL, For    time.Duration
	Cores       float64 // processor time of the client, user and system, divided by time
	PerLock     float64 // bytes of heap and stacks in use for each lock
	PerSecond   float64 // renewals sent to the masters; a lock's five count as one
	Lost        int     // locks that ended although they were not released
	AcquireTook time.Duration
	ReleaseTook time.Duration
}
