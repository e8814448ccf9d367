// Package contend makes contenders want one key. Each waits for the key, holds it for a while,
// releases it, thinks, and begins again. The package records when each of them held the key,
// and checks that no other held it then.
//
// All figures are computed from these times after the contenders have ended. Besides recording
// them, a contender only tells a [Proof] when it enters and leaves.
package contend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/redlock/bench/subject"
)

// Turn is one measurement of one subject.
type Turn struct {
	Key         string
	Hold, Think time.Duration
	// Warm is how long contenders contend before the measurement, and For how long they
	// contend during it.
	Warm, For time.Duration
}

// Contender is one contender for the key, with a client of its own or a shared one.
type Contender struct {
	Caller subject.Caller
	Name   string // its own key, which no other contender wants
}

// stuck is how long after the end of a turn all contenders must have returned.
const stuck = 30 * time.Second

// Run makes a turn. The contenders connect, the first one makes some cycles alone, and then
// all begin. At the end their contexts are cancelled, and the holder releases the key. Run
// returns an error if nothing could be measured, or if a contender has not returned.
func Run(ctx context.Context, all []Contender, proof Proof, sent *subject.Sent, turn Turn) (*Outcome, error) {
	if err := arrive(ctx, all); err != nil {
		return nil, err
	}
	alone, err := Alone(ctx, all[0].Caller, turn.Key)
	if err != nil {
		return nil, err
	}
	begin := time.Now().Add(turn.Warm)
	logs, commands, err := Window{begin, begin.Add(turn.For)}.contend(ctx, all, proof, sent, turn)
	if err != nil {
		return nil, err
	}
	o := Sum(logs, begin, begin.Add(turn.For))
	o.Alone, o.Commands = alone, commands
	return o, nil
}

// Window is the measured part of a turn.
type Window struct{ Begin, End time.Time }

// contend runs all contenders until the end of the window. commands is how many commands they
// sent in it.
func (w Window) contend(ctx context.Context, all []Contender, proof Proof, sent *subject.Sent, turn Turn) (logs []Log, commands int64, err error) {
	until, cancel := context.WithDeadline(ctx, w.End)
	defer cancel()
	logs = make([]Log, len(all))
	var contenders sync.WaitGroup
	for i, c := range all {
		contenders.Go(func() { logs[i] = c.work(until, proof, turn) })
	}
	var before, after atomic.Int64
	at := func(t time.Time, n *atomic.Int64) *time.Timer {
		return time.AfterFunc(time.Until(t), func() { n.Store(sent.Commands()) })
	}
	defer at(w.Begin, &before).Stop()
	<-until.Done()
	after.Store(sent.Commands())

	ended := make(chan struct{})
	go func() { contenders.Wait(); close(ended) }()
	limit := time.NewTimer(stuck)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C:
		return nil, 0, fmt.Errorf("a contender has not returned %v after its context had ended", stuck)
	}
	return logs, after.Load() - before.Load(), ctx.Err()
}

// arrive takes every contender through a cycle with its own key, so that all have connections,
// scripts, and whatever a client sets up once. All dial at once. That may be more than the
// machine can handle in the time that a client allows, so a contender that fails tries again.
func arrive(ctx context.Context, all []Contender) error {
	ctx, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	errs := make([]error, len(all))
	var arriving sync.WaitGroup
	for i, c := range all {
		arriving.Go(func() { errs[i] = c.arrive(ctx) })
	}
	arriving.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("arrival: %w", err)
	}
	return nil
}

func (c Contender) arrive(ctx context.Context) error {
	for {
		err := cycle(ctx, c.Caller, c.Name)
		if err == nil || ctx.Err() != nil {
			return err
		}
		Pause(ctx, 10*time.Millisecond)
	}
}

func cycle(ctx context.Context, c subject.Caller, key string) error {
	if err := c.Acquire(ctx, key); err != nil {
		return err
	}
	return c.Release(context.WithoutCancel(ctx))
}
