package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
)

var _ gocron.Locker = (*Locker)(nil)

// Config configures a Locker. The zero value lets one instance run a job at a time.
type Config struct {
	// TTL is how long a lock outlives an instance that dies while it runs the job. It need not match
	// the duration of the job. Defaults to 30 s.
	TTL time.Duration

	// AtLeast is how long a key stays taken from the acquisition on, and a little longer
	// (redlock.Config.Drift), if the job ends before. It makes jobs run once per firing. With a
	// RestartGuard it may not be above that. With Fencing, AtLeast and TTL together may not be above
	// FenceRetention. Defaults to 0: a lock ends with its job. Jobs of one
	// scheduler that need different times can each have a Locker (gocron.WithDistributedJobLocker).
	AtLeast time.Duration
}

// Locker is a gocron.Locker. It is safe for concurrent use.
type Locker struct {
	locks *redlock.Redlock
	cfg   Config

	mu   sync.Mutex
	held map[string]*held // by key; the last of each
}

// held is a gocron.Lock.
type held struct {
	*Locker
	lock  *redlock.Lock
	began time.Time
}

// NewLocker returns a Locker for gocron.WithDistributedLocker or gocron.WithDistributedJobLocker.
func NewLocker(locks *redlock.Redlock, cfg Config) (*Locker, error) {
	if cfg.TTL == 0 {
		cfg.TTL = 30 * time.Second
	}
	if cfg.AtLeast < 0 {
		return nil, fmt.Errorf("gocronlock: Config.AtLeast %v is negative", cfg.AtLeast)
	}
	if err := trylock.Check(locks, "job", cfg.TTL); err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	if err := trylock.Check(locks, "job", max(cfg.TTL, cfg.AtLeast)); err != nil {
		return nil, fmt.Errorf("gocronlock: Config.AtLeast as a ttl: %w", err)
	}
	return &Locker{locks: locks, cfg: cfg, held: map[string]*held{}}, nil
}

// Lock locks key for a job. It does not wait for another instance: the error then matches
// redlock.ErrHeld. It matches redlock.ErrNoQuorum if too few masters answered.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lock, err := trylock.Acquire(ctx, l.locks, key, l.cfg.TTL)
	if err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	lock.KeepAlive()
	h := &held{l, lock, time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[key] = h
	return h, nil
}

// Unlock releases the lock, and leaves the key taken for what is left of AtLeast. It does not use
// ctx. gocron ignores its error: it matches redlock.ErrNotHeld or redlock.ErrExpired if the lock was
// lost before. redlock.Config.Logger gets a loss too.
func (h *held) Unlock(ctx context.Context) error {
	h.mu.Lock()
	if h.held[h.lock.Key()] == h {
		delete(h.held, h.lock.Key())
	}
	h.mu.Unlock()
	if err := h.lock.ReleaseAfter(ctx, h.cfg.AtLeast-time.Since(h.began)); err != nil {
		_ = h.lock.Release(ctx) // if what is left was itself the mistake
		return fmt.Errorf("gocronlock: %w", err)
	}
	return nil
}

// Task returns a task for the job of that name (gocron.WithName). fn's context ends if the lock of
// the job is lost, or with the context that gocron gives to the job, and context.Cause says which.
// redlock.FromContext returns the lock from it, for its fencing token. After a loss the job has
// failed, whatever fn returned: the error also matches redlock.ErrNotHeld or redlock.ErrExpired.
// If no job of that name is locked, the task fails and does not run fn.
func (l *Locker) Task(name string, fn func(ctx context.Context) error) gocron.Task {
	if fn == nil {
		return gocron.NewTask(nil) // an error of NewJob
	}
	return gocron.NewTask(func(ctx context.Context) error {
		l.mu.Lock()
		h := l.held[name]
		l.mu.Unlock()
		if h == nil {
			return fmt.Errorf("gocronlock: no lock on %q: the task needs the name of its job (gocron.WithName), and its Locker", name)
		}
		return run(ctx, h.lock.Context(), h.lock, fn)
	})
}

// run runs fn with a context that ends with either of two. A loss of the lock is an error.
func run(ctx, locked context.Context, lock *redlock.Lock, fn func(context.Context) error) error {
	both, cancel := context.WithCancelCause(locked)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	err := fn(both)
	if !lock.Valid() {
		err = errors.Join(err, fmt.Errorf("gocronlock: the lock on %q was lost: %w", lock.Key(), context.Cause(lock.Context())))
	}
	return err
}
