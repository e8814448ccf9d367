package gooselock_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/integration/gooselock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

const (
	key = "migrate:shop"
	ttl = 10 * time.Second
)

func newLocks(t *testing.T, masters *redlocktest.Masters) *redlock.Redlock {
	t.Helper()
	locks, err := redlock.New(masters.Clients(), redlock.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, locks.Close()) })
	return locks
}

func newLocker(t *testing.T, masters *redlocktest.Masters) *gooselock.Locker {
	t.Helper()
	locker, err := gooselock.New(newLocks(t, masters), key, ttl)
	require.NoError(t, err)
	return locker
}

func newFile(t *testing.T) string { return filepath.Join(t.TempDir(), "db") }

func openDB(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

// newProvider returns a provider for a database in file. It has one migration, which does work.
func newProvider(t *testing.T, file string, locker *gooselock.Locker, work func(ctx context.Context) error) *goose.Provider {
	t.Helper()
	migration := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error { return work(ctx) }}, nil)
	provider, err := goose.NewProvider(goose.DialectSQLite3, openDB(t, file), nil,
		goose.WithLocker(locker), goose.WithGoMigrations(migration), goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	return provider
}

// forget deletes all keys on all masters.
func forget(masters *redlocktest.Masters) {
	for _, m := range masters.All() {
		m.Miniredis().FlushAll()
	}
}

// Of five instances one migrates, even if it takes longer than the ttl. The others wait for it.
func TestUpExcludesOthers(t *testing.T) {
	file := newFile(t)
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		var running, ran atomic.Int32
		var wg sync.WaitGroup
		for range 5 {
			provider := newProvider(t, file, newLocker(t, masters), func(context.Context) error {
				assert.EqualValues(t, 1, running.Add(1), "two at a time")
				defer running.Add(-1)
				ran.Add(1)
				time.Sleep(3 * ttl)
				return nil
			})
			wg.Go(func() {
				_, err := provider.Up(t.Context())
				assert.NoError(t, err)
				assert.EqualValues(t, 1, ran.Load())
			})
		}
		wg.Wait()
	})
}

// The context of a migration ends with the lock, and Up returns an error.
func TestUpLearnsOfALoss(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*redlocktest.Masters)
		want error
	}{
		"the masters have forgotten": {forget, redlock.ErrNotHeld},
		"the masters are away":       {func(m *redlocktest.Masters) { m.Kill(0, 1) }, redlock.ErrExpired},
	} {
		t.Run(name, func(t *testing.T) {
			file := newFile(t)
			synctest.Test(t, func(t *testing.T) {
				masters := redlocktest.StartVirtual(t, 3)
				locker := newLocker(t, masters)
				ctx, cancel := locker.Context(t.Context())
				defer cancel()
				var told error
				_, err := newProvider(t, file, locker, func(ctx context.Context) error {
					test.lose(masters)
					<-ctx.Done()
					told = context.Cause(ctx)
					return nil
				}).Up(ctx)
				assert.ErrorIs(t, told, test.want)
				assert.ErrorIs(t, err, test.want)
			})
		})
	}
}

// Without a context of Locker.Context too, Up returns an error after a loss.
func TestUnlockReportsALoss(t *testing.T) {
	file := newFile(t)
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		_, err := newProvider(t, file, newLocker(t, masters), func(ctx context.Context) error {
			forget(masters)
			time.Sleep(ttl)
			return ctx.Err()
		}).Up(t.Context())
		assert.ErrorIs(t, err, redlock.ErrNotHeld)
	})
}

// The context ends with its parent and with cancel, but not with the release of the lock.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := newLocker(t, redlocktest.StartVirtual(t, 3))
		stopped := errors.New("stopped")
		parent, stop := context.WithCancelCause(t.Context())
		ctx, cancel := locker.Context(parent)
		defer cancel()
		require.NoError(t, locker.Lock(ctx, nil))
		require.NoError(t, locker.Unlock(ctx, nil))
		synctest.Wait()
		require.NoError(t, ctx.Err())
		stop(stopped)
		assert.Equal(t, stopped, context.Cause(ctx))

		other, cancel := locker.Context(t.Context())
		cancel()
		assert.Equal(t, context.Canceled, context.Cause(other))
	})
}

// Lock waits as long as its context lasts, for another instance and for another provider of this
// one, and says why it had to wait.
func TestLockEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		holder, other := newLocker(t, masters), newLocker(t, masters)
		require.NoError(t, holder.Lock(t.Context(), nil))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		err := other.Lock(ctx, nil)
		assert.ErrorIs(t, err, redlock.ErrHeld)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.ErrorIs(t, holder.Lock(ctx, nil), context.DeadlineExceeded)

		require.NoError(t, holder.Unlock(t.Context(), nil))
		require.NoError(t, other.Lock(t.Context(), nil))
		require.NoError(t, other.Unlock(t.Context(), nil))
	})
}

// A provider whose lock was lost does not release the lock of the next one in the same process.
func TestUnlockAfterALossReleasesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		locker := newLocker(t, masters)
		require.NoError(t, locker.Lock(t.Context(), nil))
		forget(masters)
		time.Sleep(ttl)
		second := make(chan error)
		go func() { second <- locker.Lock(t.Context(), nil) }()
		synctest.Wait()
		assert.ErrorIs(t, locker.Unlock(t.Context(), nil), redlock.ErrNotHeld)
		require.NoError(t, <-second)

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorIs(t, newLocker(t, masters).Lock(ctx, nil), redlock.ErrHeld)
		require.NoError(t, locker.Unlock(t.Context(), nil))
	})
}

// Unlock works with a context that has ended.
func TestUnlockDoesNotNeedItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		locker := newLocker(t, masters)
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, locker.Lock(ctx, nil))
		cancel()
		require.NoError(t, locker.Unlock(ctx, nil))
		require.NoError(t, newLocker(t, masters).Lock(t.Context(), nil))
	})
}

func TestMistakesAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newLocks(t, redlocktest.StartVirtual(t, 3))
		for want, args := range map[string]struct {
			locks *redlock.Redlock
			key   string
			ttl   time.Duration
		}{
			"locks is nil": {nil, key, ttl},
			"key":          {locks, "", ttl},
			"ttl":          {locks, key, time.Millisecond},
		} {
			_, err := gooselock.New(args.locks, args.key, args.ttl)
			assert.ErrorContains(t, err, want)
		}
		locker, err := gooselock.New(locks, key, ttl)
		require.NoError(t, err)
		assert.EqualError(t, locker.Unlock(t.Context(), nil), `gooselock: unlock "migrate:shop": it is not locked`)
	})
}
