// Package gooselock lets one process at a time run the migrations of goose, under a lock that a
// majority of Redis masters has granted.
//
//	locker, err := gooselock.New(locks, "migrate:shop", 30*time.Second)
//	…
//	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithLocker(locker))
//	…
//	ctx, cancel := locker.Context(ctx) // ends if the lock is lost
//	defer cancel()
//	_, err = provider.Up(ctx)
//
// Every instance of a service can do this when it starts: one of them migrates, and the others wait
// for it and then find nothing to do. Unlike goose's own locks this works with every database that
// goose knows, and the lock does not occupy a connection.
//
// The lock is renewed while goose works. If it is lost all the same, a context of [Locker.Context]
// ends, and goose rolls the present migration back if it runs in a transaction. In any case
// [Locker.Unlock] returns an error, which becomes one of provider.Up.
//
// A lock cannot stop a statement that the database has already got. Where an overlap is not to be
// risked, keep the migrations in transactions.
package gooselock

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
)

var _ lock.Locker = (*Locker)(nil)

// Locker is a lock.Locker of goose. Several providers may share one.
type Locker struct {
	locks *redlock.Redlock
	key   string
	ttl   time.Duration

	locked chan struct{} // has an element from when Lock begins until Unlock, so that one caller has the lock
	holds  chan hold     // has an element from when Lock has returned until Unlock
}

// hold is a lock that Unlock is to release.
type hold struct {
	lock   *redlock.Lock
	unbind func() bool // ends the connection between lock and a context of Context
}

// New returns a Locker that locks key. If a process dies while it migrates, the others wait until
// ttl is over. The ttl need not match the duration of the migrations, as the lock is renewed.
func New(locks *redlock.Redlock, key string, ttl time.Duration) (*Locker, error) {
	if err := trylock.Check(locks, key, ttl); err != nil {
		return nil, fmt.Errorf("gooselock: %w", err)
	}
	return &Locker{locks: locks, key: key, ttl: ttl, locked: make(chan struct{}, 1), holds: make(chan hold, 1)}, nil
}

// Context returns a context for the methods of a provider. It ends with parent, with cancel, or when
// the lock is lost between Lock and Unlock; context.Cause says which. One context is for one call.
func (l *Locker) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, lost := context.WithCancelCause(parent)
	return context.WithValue(ctx, l, lost), func() { lost(nil) }
}

// Lock waits for the lock until ctx ends, and also while too few masters answer; give ctx a
// deadline. The error then matches the cause of ctx and, if the masters were asked, redlock.ErrHeld
// or redlock.ErrNoQuorum. After an error this call has locked nothing.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	select {
	case l.locked <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("gooselock: lock %q: %w", l.key, context.Cause(ctx))
	}
	held, err := l.locks.Acquire(ctx, l.key, l.ttl)
	if err != nil {
		<-l.locked
		return fmt.Errorf("gooselock: %w", err)
	}
	held.KeepAlive()
	unbind := func() bool { return true }
	if lost, ok := ctx.Value(l).(context.CancelCauseFunc); ok {
		unbind = context.AfterFunc(held.Context(), func() { lost(context.Cause(held.Context())) })
	}
	l.holds <- hold{held, unbind}
	return nil
}

// Unlock releases the lock. It does not use ctx. An error that matches redlock.ErrNotHeld or
// redlock.ErrExpired means that the lock was lost before, so that another process may have migrated
// at the same time. With redlock.ErrNoQuorum the migrations ran under the lock, but others may have
// to wait until its ttl is over. The lock has ended whatever Unlock returns.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	var held hold
	select {
	case held = <-l.holds:
	default:
		return fmt.Errorf("gooselock: unlock %q: it is not locked", l.key)
	}
	<-l.locked // from here on another Lock may go on
	held.unbind()
	if err := held.lock.Release(ctx); err != nil {
		return fmt.Errorf("gooselock: %w", err)
	}
	return nil
}
