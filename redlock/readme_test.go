package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// The code that README.md shows, compiled. It runs as the Example of the package,
// on masters that exist.

func firstProgram(ctx context.Context) {
	locks, err := redlock.Open([]string{
		"redis://redis-a:6379", "redis://redis-b:6379", "redis://redis-c:6379",
	}, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// At most one process runs this at a time, whichever master is down.
	err = locks.Do(ctx, "nightly-report", 10*time.Second, func(ctx context.Context) error {
		fmt.Println("writing the report")
		return ctx.Err() // ctx ends if the lock is lost
	})
	if err != nil {
		log.Fatal(err)
	}
}

var errBusy = errors.New("busy")

func byHand(ctx context.Context, locks *redlock.Redlock) error {
	lock, err := locks.TryAcquire(ctx, "cart:42", 5*time.Second) // one attempt
	if errors.Is(err, redlock.ErrHeld) {
		return errBusy
	} else if err != nil {
		return err
	}
	defer lock.Release(ctx)
	return nil
}

func TestReadmesOwnTest(t *testing.T) {
	masters := redlocktest.Start(t, 5)
	locks, err := redlock.Open(masters.URLs(), redlock.Config{})
	require.NoError(t, err)
	defer locks.Close()
	masters.Kill(0, 1)
	require.NoError(t, byHand(ctx, locks))
	lock, err := locks.TryAcquire(ctx, "cart:42", 5*time.Second)
	require.NoError(t, err, "byHand released it")
	assert.Equal(t, errBusy, byHand(ctx, locks))
	require.NoError(t, lock.Release(ctx))
}

// Every line of Go in the README is a line of this file.
func TestReadmeShowsCompiledCode(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	have := map[string]bool{"": true, "…": true}
	for line := range strings.Lines(string(source)) {
		have[strings.TrimSpace(line)] = true
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		for line := range strings.Lines(code) {
			assert.True(t, have[strings.TrimSpace(line)], "not compiled: %q", line)
		}
	}
	_ = firstProgram
}
