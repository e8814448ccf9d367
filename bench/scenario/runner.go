package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/bench/check"
	"github.com/quorumlock/redlock/bench/load"
	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// Runner runs cells on some masters.
type Runner struct {
	Masters *masters.Set
	Turn    time.Duration // of one subject in one cell
	// Cut is the time at which a turn with a fault ends, whatever hangs. Some subjects need
	// seconds for one cycle there.
	Cut time.Duration
	// Contender is the flag that makes this program one contender; see [contend.Processes].
	Contender string
	Progress  io.Writer
	// Problem is called for each wrong answer.
	Problem func(error)

	turns int
	// stragglers are how the keys begin of the turns whose subjects may leave some. Such a key may
	// reach a master after the turn's end, and must not be held against the next subject.
	stragglers []string
	delays     map[time.Duration]time.Duration // of links, by round trip
}

// Nodes returns the number of masters that the cells need.
func Nodes(cells []Cell) (n int) {
	for _, c := range cells {
		n = max(n, c.Nodes)
	}
	return n
}

// Check takes every subject through a lock, on every number of masters and every path that the
// cells have. It returns how many such checks there were.
func (r *Runner) Check(ctx context.Context, cells []Cell) (checked int, err error) {
	seen := make(map[string]bool)
	for _, cell := range cells {
		addrs, err := r.addrs(cell)
		if err != nil {
			return checked, err
		}
		for _, name := range cell.Subjects {
			what := fmt.Sprint(name, len(addrs), cell.Linked)
			if seen[what] {
				continue
			}
			seen[what] = true
			spec, err := subject.Of(name)
			if err != nil {
				return checked, err
			}
			if err := check.Locks(ctx, r.Masters, spec, addrs); err != nil {
				if ctx.Err() != nil {
					return checked, ctx.Err()
				}
				r.Problem(err)
			}
			checked++
		}
	}
	return checked, nil
}

// Round gives every subject its turn in every cell. If an error ends it, it also returns the
// samples so far.
func (r *Runner) Round(ctx context.Context, cells []Cell, round int) (samples []result.Sample, err error) {
	for _, cell := range cells {
		var line []string
		for _, name := range rotated(cell.Subjects, round) {
			turn := r.turn
			if cell.Scenario == result.Contended {
				turn = r.contend
			}
			sample, err := turn(ctx, cell, name, round)
			if ctx.Err() != nil {
				return samples, ctx.Err()
			}
			if err != nil {
				r.Problem(fmt.Errorf("%v: %s: %w", cell, name, err))
				continue
			}
			samples = append(samples, sample)
			line = append(line, fmt.Sprintf("%s %.0f/s", name, sample.PerSecond))
		}
		fmt.Fprintf(r.Progress, "  %v: %s\n", cell, strings.Join(line, "; "))
	}
	return samples, nil
}

// turn opens a subject, so that it is alone in the process, measures it, and checks what it
// has left on the masters.
func (r *Runner) turn(ctx context.Context, cell Cell, name result.Subject, round int) (sample result.Sample, err error) {
	spec, err := subject.Of(name)
	if err != nil {
		return sample, err
	}
	addrs, err := r.addrs(cell)
	if err != nil {
		return sample, err
	}
	fault, err := r.path(cell)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, fault.end()) }()
	locker, err := spec.Open(subject.Target{Addrs: addrs, Callers: cell.Callers})
	if err != nil {
		return sample, err
	}
	if len(spec.Stays) > 0 {
		// After Close, when all commands have been answered: an answer may add another key.
		defer func() { err = errors.Join(err, r.Masters.Flush(ctx)) }()
	}
	closed := false
	defer func() {
		if !closed {
			_ = locker.Close()
		}
	}()

	r.turns++
	turn := load.Turn{Number: r.turns, Callers: cell.Callers, Warm: r.Turn / 4, For: r.Turn}
	if fault.any() {
		turn.Limit = r.Cut
		turn.Begin = func() error {
			// Commands that were sent before the fault must not be stuck in it.
			if err := r.empty(ctx, cell, spec); err != nil {
				return err
			}
			return fault.begin()
		}
		turn.End = func() { _ = fault.end() }
	}
	outcome, err := run(ctx, locker, turn)
	if err != nil {
		return sample, err
	}
	sample = outcome.Sample(cell.Cell, name, round)
	if cell.Linked {
		sample.Allocs = 0 // the links are in this process too
	}
	if outcome.Err != nil {
		fmt.Fprintf(r.Progress, "  %v: %s: %d cycles failed, the last with: %v\n", cell, name, outcome.Errors, firstLine(outcome.Err))
	}
	if err := fault.end(); err != nil {
		return sample, err
	}
	// A lock that reaches its masters again cleans up there. Close it only after that.
	err = r.empty(ctx, cell, spec)
	if spec.LeavesStragglers {
		r.stragglers = append(r.stragglers, load.Prefix(r.turns))
	}
	closed = true
	if e := locker.Close(); e != nil && !fault.any() {
		err = errors.Join(err, fmt.Errorf("close: %w", e))
	}
	if outcome.Cycles == 0 && !fault.any() {
		err = errors.Join(err, errors.New("not one cycle succeeded"))
	}
	return sample, err
}

func run(ctx context.Context, l subject.Locker, t load.Turn) (*load.Outcome, error) {
	if c, ok := l.(*subject.Ceiling); ok {
		return load.Bulk(c, t)
	}
	return load.Run(ctx, l, t)
}

// empty waits until the masters have only keys that are to stay. Other keys are an error,
// unless the subject leaves some by design; then they are only reported. In both cases empty
// deletes them, because they would hinder the next subject.
//
// A hung master may later execute a command from a connection that was given up, after the
// release that came on another one. Such a key lives until its ttl, and no longer.
func (r *Runner) empty(ctx context.Context, cell Cell, spec subject.Spec) error {
	patience := spec.Patience()
	switch {
	case cell.Hung > 0 && spec.Name == result.Quorumlock:
		patience += subject.TTL
	case cell.Scenario == result.Contended && (isOurs(spec.Name) || spec.AbandonsKeys):
		patience = unwanted
	}
	err := r.Masters.AwaitOnly(ctx, slices.Concat(spec.Stays, r.stragglers), patience)
	if err == nil || !errors.Is(err, masters.ErrLeft) {
		return err
	}
	if e := r.Masters.Flush(ctx); e != nil {
		return e
	}
	if spec.LeavesStragglers || cell.Scenario == result.Contended && spec.AbandonsKeys || cell.Hung > 0 && spec.Name != result.Quorumlock {
		fmt.Fprintf(r.Progress, "  %v: %s: %v\n", cell, spec.Name, err)
		return nil
	}
	return err
}

// unwanted is how long it may take until no key of the queue is left after all have stopped
// wanting the lock.
const unwanted = time.Second

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
