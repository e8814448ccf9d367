package redlockotel_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// absent checks that a text has none of the words. It does not print the text, which is long.
func absent(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if at := strings.Index(text, word); at >= 0 {
			t.Errorf("%q in %q", word, text[max(0, at-200):at+len(word)])
		}
	}
}

// secrets are the values and handles of a session.
type secrets []string

func (s *secrets) of(lock *redlock.Lock) *redlock.Lock {
	*s = append(*s, lock.Value(), lock.Value()[:36]) // the second is the part that is random
	return lock
}

// quoted is what a server's error message quotes in a session, as a real server quotes the arguments
// of a command that it does not know.
const quoted = "the-quoted-value"

// session takes and ends locks in every way, on real time. It returns what must be nowhere.
func session(t *testing.T, ctx context.Context, locks *redlock.Redlock, masters *redlocktest.Masters) (all secrets) {
	t.Helper()
	lock, err := locks.Acquire(ctx, key, ttl)
	require.NoError(t, err)
	all.of(lock)
	_, err = locks.TryAcquire(ctx, key, ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)

	waits, waited := make(chan struct{}), make(chan error, 1)
	go func() {
		close(waits)
		next, err := locks.Acquire(ctx, key, ttl)
		if err == nil {
			all.of(next)
			err = next.Release(ctx)
		}
		waited <- err
	}()
	<-waits
	require.NoError(t, lock.Extend(ctx, 2*ttl))
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, <-waited)

	lock, err = locks.TryAcquire(ctx, "handed over", ttl)
	require.NoError(t, err)
	all.of(lock)
	handle, err := lock.Detach()
	require.NoError(t, err)
	all = append(all, handle)
	lock, err = locks.Resume(ctx, handle, ttl)
	require.NoError(t, err)
	require.NoError(t, lock.ReleaseAfter(ctx, ttl))

	lock, err = locks.TryAcquire(ctx, "forced", ttl)
	require.NoError(t, err)
	all.of(lock)
	found, err := locks.Inspect(ctx, "forced")
	require.NoError(t, err)
	_, err = locks.ForceRelease(ctx, found)
	require.NoError(t, err)
	require.ErrorIs(t, lock.Release(ctx), redlock.ErrNotHeld)

	// An attempt on a minority is cleaned up.
	for _, i := range []int{0, 1} {
		require.NoError(t, masters.Master(i).Miniredis().Set("foreign", "somebody else"))
		require.NoError(t, masters.Master(i).Miniredis().Set("app:foreign", "somebody else")) // with a KeyPrefix
	}
	_, err = locks.TryAcquire(ctx, "foreign", ttl)
	require.ErrorIs(t, err, redlock.ErrHeld)

	for _, m := range masters.All() {
		m.Miniredis().SetError("ERR unknown command, with args beginning with: '" + quoted + "'")
	}
	_, err = locks.TryAcquire(ctx, key, ttl)
	assert.ErrorIs(t, err, redlock.ErrNoQuorum)
	for _, m := range masters.All() {
		m.Miniredis().SetError("")
	}
	return all
}
