// Package certmagiclock gives certmagic, and so Caddy, locks that a majority of Redis masters has
// granted, so that instances which share a storage do not obtain a certificate twice.
//
//	storage, err := certmagiclock.Wrap(storage, locks, 30*time.Second)
//	…
//	certmagic.Default.Storage = storage
//
// [Wrap] replaces the locks of any storage, such as one on a bucket or a network file system. A
// [Locker] alone is for storages that are written in Go: it is a certmagic.Locker, TryLocker and
// LockLeaseRenewer.
//
// A lock is renewed until it is unlocked, however long the authority takes. If an instance dies, the
// others get its locks when their ttl is over. certmagic cannot interrupt work whose lock is lost.
// It asks before each attempt to get a certificate, and [Locker.RenewLockLease] then gets the lock
// again, or fails so that the attempt is not made. [Locker.Unlock] reports a loss too. An attempt
// that is under way when its lock is lost goes on. certmagic allows for that: two instances may then
// obtain the same certificate, and the later one is stored.
package certmagiclock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/quorumlock/redlock/internal/trylock"
	"github.com/quorumlock/redlock/redlock"
)

var (
	_ certmagic.Locker           = (*Locker)(nil)
	_ certmagic.TryLocker        = (*Locker)(nil)
	_ certmagic.LockLeaseRenewer = (*Locker)(nil)
)

// Locker locks names for certmagic. It is safe for concurrent use.
type Locker struct {
	locks *redlock.Redlock
	ttl   time.Duration

	mu    sync.Mutex
	names map[string]*name // that a caller in this process has
}

// name reserves a name for one caller, from before the caller asks the masters until it unlocks. The
// reservation stays even if the lock is lost: certmagic unlocks by name, so the caller could
// otherwise unlock the lock of the next one.
type name struct {
	lock *redlock.Lock // nil while the masters are asked
	free chan struct{} // closed when the caller no longer has the name
}

// New returns a Locker. If a process dies, its locks end when ttl is over.
func New(locks *redlock.Redlock, ttl time.Duration) (*Locker, error) {
	if err := trylock.Check(locks, "certificate", ttl); err != nil {
		return nil, wrapped(err)
	}
	return &Locker{locks: locks, ttl: ttl, names: map[string]*name{}}, nil
}

// Lock waits for key until ctx ends, also while too few masters answer. The error then matches the
// cause of ctx and, if the masters were asked, redlock.ErrHeld or redlock.ErrNoQuorum. After an
// error nothing is locked.
func (l *Locker) Lock(ctx context.Context, key string) error {
	if ctx == nil {
		return errors.New("certmagiclock: ctx is nil")
	}
	for {
		ours, theirs := l.reserve(key)
		if ours != nil {
			lock, err := l.locks.Acquire(ctx, key, l.ttl)
			return l.locked(key, ours, lock, err)
		}
		select {
		case <-theirs.free:
		case <-ctx.Done():
			return fmt.Errorf("certmagiclock: lock %q: %w", key, context.Cause(ctx))
		}
	}
}

// TryLock locks key if nobody has it, and reports whether it did so. An error that matches
// redlock.ErrNoQuorum means that too few masters answered.
func (l *Locker) TryLock(ctx context.Context, key string) (bool, error) {
	ours, _ := l.reserve(key)
	if ours == nil {
		return false, nil
	}
	lock, err := trylock.Acquire(ctx, l.locks, key, l.ttl)
	err = l.locked(key, ours, lock, err)
	if errors.Is(err, redlock.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// RenewLockLease proves that a majority of the masters has the lock. If the lock was lost, it tries
// once to get it again. certmagic calls it at the beginning of each attempt, and then checks whether
// another instance has stored the certificate. After an error certmagic makes the next attempt later.
//
// The lock is renewed until it is unlocked, so lease does not matter. A long lease would only make
// others wait if this process died.
func (l *Locker) RenewLockLease(ctx context.Context, key string, lease time.Duration) error {
	l.mu.Lock()
	ours := l.names[key]
	if ours == nil || ours.lock == nil {
		l.mu.Unlock()
		return fmt.Errorf("certmagiclock: renew %q: it is not locked", key)
	}
	lock := ours.lock
	l.mu.Unlock()

	err := lock.Extend(ctx, l.ttl)
	if err == nil || lock.Valid() {
		return wrapped(err)
	}
	_ = lock.Release(ctx) // a minority of the masters may still have it
	again, err := l.locks.TryAcquire(ctx, key, l.ttl)
	if err != nil {
		return wrapped(err)
	}
	again.KeepAlive()
	l.mu.Lock()
	current := l.names[key] == ours && ours.lock == lock
	if current {
		ours.lock = again
	}
	l.mu.Unlock()
	if !current {
		_ = again.Release(ctx)
		return fmt.Errorf("certmagiclock: renew %q: it was unlocked meanwhile", key)
	}
	return nil
}

// Unlock releases key. It does not use ctx. An error that matches redlock.ErrNotHeld or
// redlock.ErrExpired means that the lock was lost before. With redlock.ErrNoQuorum others may have
// to wait until its ttl is over. Nothing is locked after Unlock, whatever it returns.
func (l *Locker) Unlock(ctx context.Context, key string) error {
	l.mu.Lock()
	ours := l.names[key]
	if ours == nil || ours.lock == nil {
		l.mu.Unlock()
		return fmt.Errorf("certmagiclock: unlock %q: it is not locked", key)
	}
	lock := ours.lock
	l.drop(key, ours)
	l.mu.Unlock()
	err := lock.Release(ctx)
	if errors.Is(err, redlock.ErrReleased) { // by RenewLockLease, after it was lost
		err = fmt.Errorf("unlock %q: %w", key, context.Cause(lock.Context()))
	}
	return wrapped(err)
}

// reserve gives key to the caller, or returns what another caller has.
func (l *Locker) reserve(key string) (ours, theirs *name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if theirs = l.names[key]; theirs != nil {
		return nil, theirs
	}
	ours = &name{free: make(chan struct{})}
	l.names[key] = ours
	return ours, nil
}

// locked ends what reserve has begun.
func (l *Locker) locked(key string, ours *name, lock *redlock.Lock, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.drop(key, ours)
		return wrapped(err)
	}
	lock.KeepAlive()
	ours.lock = lock
	return nil
}

func (l *Locker) drop(key string, ours *name) {
	delete(l.names, key)
	close(ours.free)
}

func wrapped(err error) error {
	if err != nil {
		err = fmt.Errorf("certmagiclock: %w", err)
	}
	return err
}
