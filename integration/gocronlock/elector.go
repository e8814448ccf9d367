package gocronlock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
)

var _ gocron.Elector = (*Elector)(nil)

// Elector is a gocron.Elector: the leader runs all jobs, and the other instances none. It is safe
// for concurrent use.
//
// With an Elector gocron asks no Locker. A firing while the leader changes may be run by nobody, or
// by two instances whose clocks differ. A Locker does not have this gap, and spreads the jobs over
// all instances.
type Elector struct {
	election *election.Election
	name     string

	mu   sync.Mutex
	term *term // nil if this instance does not lead
}

// term is a time in which this instance leads.
type term struct {
	ctx     context.Context // ends with the term, or with that of Run
	lock    *redlock.Lock
	running sync.WaitGroup // tasks; none is added once Elector.term is another one
}

// NewElector returns an Elector. Instances with the same name elect one leader, by a lock with that
// key. If the leader dies, another one follows when ttl is over. No instance leads before
// [Elector.Run] is called.
func NewElector(locks *redlock.Redlock, name string, ttl time.Duration) (*Elector, error) {
	if err := trylock.Check(locks, name, ttl); err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return &Elector{election: election.New(locks, name, ttl), name: name}, nil
}

// Run takes part in the election until ctx ends, and leads again after a lost term; start it on a
// goroutine. When ctx ends, or a term is lost, the contexts of [Elector.Task] end. A term is given
// up only after these tasks have returned, so that the next leader does not overlap with them. So
// shut the scheduler down first, and let Run return before the program ends.
//
// Run returns nil after ctx has ended. An error means that it cannot take part in the election, for
// example because of redlock.ErrClosed.
func (e *Elector) Run(ctx context.Context) error {
	err := e.election.Lead(ctx, func(ctx context.Context) error {
		lock, ok := redlock.FromContext(ctx, e.name)
		if !ok {
			return nil // lost already, so Lead campaigns again
		}
		t := &term{ctx: ctx, lock: lock}
		e.set(t)
		<-ctx.Done()
		e.set(nil)
		t.running.Wait()
		return nil
	})
	if ctx != nil && ctx.Err() != nil {
		return nil
	}
	return err
}

func (e *Elector) set(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}

// IsLeader returns nil if this instance leads now. It asks no master.
func (e *Elector) IsLeader(ctx context.Context) error {
	return e.election.IsLeader(ctx)
}

// Task returns a task for a job of the leader. fn's context ends with the term, or with the context
// that gocron gives to the job, and context.Cause says which. redlock.FromContext returns the lock
// of the term from it, for its fencing token. If the term was lost, the job has failed, whatever fn
// returned. If this instance does not lead any more, the task fails and does not run fn.
func (e *Elector) Task(fn func(ctx context.Context) error) gocron.Task {
	if fn == nil {
		return gocron.NewTask(nil) // an error of NewJob
	}
	return gocron.NewTask(func(ctx context.Context) error {
		e.mu.Lock()
		t := e.term
		if t == nil || t.ctx.Err() != nil {
			e.mu.Unlock()
			return fmt.Errorf("gocronlock: %w", election.ErrNotLeader)
		}
		t.running.Add(1)
		e.mu.Unlock()
		defer t.running.Done()
		return run(ctx, t.ctx, t.lock, fn)
	})
}
