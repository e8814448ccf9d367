package redlock_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
	"github.com/quorumlock/redlock/redlock/fence"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// The parts of programs that README.md shows, compiled. Tests in the module's root build and run
// its complete programs as they are printed.

func onlyOneOfUs(ctx context.Context, locks *redlock.Redlock, work func(context.Context) error) error {
	lock, err := locks.TryAcquire(ctx, "expired-carts", 10*time.Second)
	if errors.Is(err, redlock.ErrHeld) {
		return nil // somebody else is at it
	} else if err != nil {
		return err
	}
	defer lock.Release(ctx)
	lock.KeepAlive() // until released or lost

	held, cancel := context.WithCancelCause(lock.Context()) // ends with the lock …
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) }) // … or with ctx
	defer stop()
	return work(held)
}

func oneLeader(ctx context.Context, locks *redlock.Redlock, schedule func(context.Context) error) error {
	leaders := election.New(locks, "leader:scheduler", 10*time.Second)
	return leaders.Lead(ctx, func(ctx context.Context) error {
		return schedule(ctx) // in one process at a time; ctx ends when the term does
	})
}

func guardedLocks(urls []string) (*redlock.Redlock, error) {
	locks, err := redlock.Open(urls, redlock.Config{
		Fencing:      true,             // tokens
		RestartGuard: 30 * time.Second, // at least the longest ttl in use: masters that forgot do not vote
	})
	return locks, err
}

func pay(ctx context.Context, db *sql.DB, guard *fence.Guard, lock *redlock.Lock) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// fence.ErrStaleToken: somebody else has got the lock since.
	if err := guard.Check(ctx, tx, "invoice:42", lock.FencingToken()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE invoices SET paid = true WHERE id = 42"); err != nil {
		return err
	}
	return tx.Commit()
}

// The nested Do joins the outer lock.
func openReentrant(urls []string) (*redlock.Redlock, error) {
	locks, err := redlock.Open(urls, redlock.Config{Reentrant: true})
	return locks, err
}

func reenter(ctx context.Context, locks *redlock.Redlock, post func(context.Context) error) error {
	err := locks.Do(ctx, "account:7", 10*time.Second, func(ctx context.Context) error {
		// Deeper in the program, with this ctx:
		return locks.Do(ctx, "account:7", 10*time.Second, post)
	})
	return err
}

func TestReadmeReentrancy(t *testing.T) {
	locks, err := openReentrant(masters)
	require.NoError(t, err)
	defer locks.Close()
	posted := 0
	require.NoError(t, reenter(ctx, locks, func(ctx context.Context) error {
		posted++
		return ctx.Err()
	}))
	assert.Equal(t, 1, posted)
}

func TestReadmeTestOfAUser(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	locks, err := redlock.Open(masters.URLs(), redlock.Config{NodeTimeout: 5 * time.Second}) // CI is slow
	require.NoError(t, err)
	defer locks.Close()
	masters.Kill(0, 1)

	done := 0
	require.NoError(t, onlyOneOfUs(ctx, locks, func(context.Context) error {
		done++
		return onlyOneOfUs(ctx, locks, func(context.Context) error { done++; return nil })
	}))
	assert.Equal(t, 1, done)
	require.NoError(t, oneLeader(ctx, locks, func(context.Context) error { done++; return nil }))
	assert.Equal(t, 2, done)
	lock, err := locks.TryAcquire(ctx, "expired-carts", time.Minute)
	require.NoError(t, err, "it was released")
	require.NoError(t, lock.Release(ctx))
}

func TestReadmeTestInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 5)
		locks, err := redlock.New(masters.Clients(), redlock.Config{})
		require.NoError(t, err)
		defer locks.Close() // a bubble waits for its goroutines
		masters.Master(0).Stall()
		time.Sleep(time.Minute)
		lock, err := locks.TryAcquire(ctx, "job", time.Minute)
		require.NoError(t, err)
		require.NoError(t, lock.Release(ctx))
	})
}

// Every line of Go in the README is a line of this file, except those of complete programs.
func TestReadmeShowsCompiledCode(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	have := map[string]bool{"": true}
	for line := range strings.Lines(string(source)) {
		have[strings.TrimSpace(line)] = true
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		if strings.HasPrefix(code, "package main\n") {
			continue
		}
		for line := range strings.Lines(code) {
			assert.True(t, have[strings.TrimSpace(line)], "not compiled: %q", line)
		}
	}
	_, _ = guardedLocks, pay
}

// The page on observability lists every record that the library logs, with its level and message.
func TestObservabilityPageHasEachRecord(t *testing.T) {
	page, err := os.ReadFile("../docs/observability.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Logs\n")
	documented := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]+) \\| ([^|]+) \\|").FindAllStringSubmatch(section, -1) {
		if m[2] == "WARN" || m[2] == "INFO" {
			documented[m[1]] = m[2] + " " + m[3] + " " + strings.ReplaceAll(m[4], "`", "")
		}
	}
	logged := map[string]string{}
	attribute := regexp.MustCompile(`"(\w+)", `)
	for _, pattern := range []string{"*.go", "internal/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?s)\b[lL]og\.(Warn|Info)\("(\w+)", "([^"]+)",(.*?)\)\n`).FindAllStringSubmatch(string(text), -1) {
				var attributes []string
				for _, a := range attribute.FindAllStringSubmatch(m[4], -1) {
					attributes = append(attributes, a[1])
				}
				logged[m[2]] = strings.ToUpper(m[1]) + " " + m[3] + " " + strings.Join(attributes, ", ")
			}
		}
	}
	assert.Contains(t, logged, "lock_lost")
	assert.Equal(t, logged, documented)
}
