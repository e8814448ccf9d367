package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/bench/result"
	"github.com/quorumlock/redlock/bench/subject"
)

// contend makes a turn of a subject in a cell in which all callers want one key.
func (r *Runner) contend(ctx context.Context, cell Cell, name result.Subject, round int) (sample result.Sample, err error) {
	spec, err := subject.Of(name)
	if err != nil {
		return sample, err
	}
	addrs, err := r.addrs(cell)
	if err != nil {
		return sample, err
	}
	way, err := r.path(cell)
	if err != nil {
		return sample, err
	}
	defer func() { err = errors.Join(err, way.end()) }()
	r.turns++
	turn := contend.Turn{
		Key: fmt.Sprintf("t%04d:wanted", r.turns), Hold: cell.Hold, Think: cell.Think,
		For: contention(r.Turn, cell),
	}
	turn.Warm = turn.For / 4
	var outcome *contend.Outcome
	closeAll := func() error { return nil }
	if cell.Processes {
		outcome, err = contend.Processes(ctx, r.Contender, cell.Callers,
			contend.Plan{Subject: name, Addrs: addrs, Turn: turn})
	} else {
		outcome, closeAll, err = together(ctx, cell, spec, addrs, turn)
	}
	if err != nil {
		return sample, errors.Join(err, closeAll())
	}
	err = errors.Join(r.empty(ctx, cell, spec), closeAll())
	if outcome.Err != nil {
		fmt.Fprintf(r.Progress, "  %v: %s: %d failed, one of them with: %v\n", cell, name, outcome.Errors, firstLine(outcome.Err))
	}
	if outcome.Twice > 0 {
		err = errors.Join(err, fmt.Errorf("in %d of %d acquisitions somebody else had the key too", outcome.Twice, outcome.Acquisitions))
	}
	if outcome.Acquisitions == 0 && isOurs(name) {
		err = errors.Join(err, errors.New("not one acquisition succeeded"))
	}
	return outcome.Sample(cell.Cell, name, round), err
}

// together runs all contenders in this process, with a client each or with one for all.
func together(ctx context.Context, cell Cell, spec subject.Spec, addrs []string, turn contend.Turn) (o *contend.Outcome, closeAll func() error, err error) {
	var lockers []subject.Locker
	closeAll = func() error {
		var errs []error
		for _, l := range lockers {
			errs = append(errs, l.Close())
		}
		return errors.Join(errs...)
	}
	target := subject.Target{Addrs: addrs, Callers: 1, Sent: new(subject.Sent)}
	if cell.OneClient {
		target.Callers = cell.Callers
	}
	all := make([]contend.Contender, cell.Callers)
	for i := range all {
		if i == 0 || !cell.OneClient {
			l, err := spec.Wait(target)
			if err != nil {
				return nil, closeAll, err
			}
			lockers = append(lockers, l)
		}
		all[i] = contend.Contender{
			Caller: lockers[len(lockers)-1].Caller(),
			Name:   fmt.Sprintf("%s:%d", turn.Key, i),
		}
	}
	o, err = contend.Run(ctx, all, new(contend.Counter), target.Sent, turn)
	return o, closeAll, err
}

// contention returns how long a turn is: long enough for eight acquisitions by each contender.
// The thousand callers of one client are not counted individually, so their turn is shorter.
func contention(turn time.Duration, cell Cell) time.Duration {
	const least = 300 * time.Millisecond
	if cell.OneClient {
		return max(turn, least)
	}
	one := cell.Hold + 1500*time.Microsecond + 3*cell.RTT
	return max(turn, least, time.Duration(8*cell.Callers)*one)
}

// isOurs reports whether a subject is this library, by default or with Fair.
func isOurs(name result.Subject) bool { return name == result.Quorumlock || name == result.Fair }
