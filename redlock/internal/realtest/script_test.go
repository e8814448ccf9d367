package realtest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/internal/testenv/redisserver"
	"github.com/quorumlock/redlock/redlock"
)

// flushScripts makes every master forget its scripts, as a restart does.
func (f *fleet) flushScripts() {
	f.Helper()
	for _, a := range f.admin {
		require.NoError(f, a.ScriptFlush(f.ctx).Err())
	}
}

// Case 3: the scripts are lost on all nodes between acquisition, extension and release. redsync
// left orphaned keys then.
func TestRealReleaseAfterAScriptFlush(t *testing.T) {
	f := startFleet(t, 5)
	r, other := f.redlock(redlock.Config{}), f.redlock(redlock.Config{})
	f.cycle(r, "warm up")
	for range 20 {
		l := f.acquire(r, key, ttl)
		f.flushScripts()
		require.NoError(t, l.Extend(f.ctx, 2*ttl))
		f.flushScripts()
		// The clean-up of a refused attempt is a script too.
		_, err := other.TryAcquire(f.ctx, key, ttl)
		require.ErrorIs(t, err, redlock.ErrHeld)
		f.flushScripts()
		require.NoError(t, f.release(l))
		f.gone(key)
	}
	for i := range f.servers {
		assert.Positive(t, f.calls(i, "eval"), "it went whole when the hash was not known")
	}
}

// This is case 3 while pipelines are under way.
func TestRealAcquireUnderLoadAndScriptFlushes(t *testing.T) {
	f := startFleet(t, 3)
	r := f.redlock(redlock.Config{})
	var g errgroup.Group
	for i := range 32 {
		g.Go(func() error {
			name := string(rune('A' + i))
			for range 20 {
				l, err := r.TryAcquire(f.ctx, name, ttl)
				if err != nil {
					return err
				}
				if err := errors.Join(l.Extend(f.ctx, ttl), l.Release(f.ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	f.flushUntilDone(&g)
	for i := range f.servers {
		f.eventually("no key is left", func() bool { return f.admin[i].DBSize(f.ctx).Val() == 0 })
	}
}

// When all nodes can be reached again, no key of ours is left. A node that is busy with another
// client's script replies BUSY to everything; pending deliveries to it are sent again.
func TestRealReleaseOnBusyNodes(t *testing.T) {
	f := startFleet(t, 3, redisserver.Config("busy-reply-threshold 1"))
	r := f.redlock(redlock.Config{})
	l := f.hold(r, "held")
	loops := make(chan error, 2)
	for i := range 2 {
		go func() { loops <- f.admin[i].Eval(f.ctx, "while true do end", nil).Err() }()
		probe := f.servers[i].Client()
		f.eventually("it is busy", func() bool {
			err := probe.Ping(f.ctx).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		})
	}
	_, err := r.TryAcquire(f.ctx, key, time.Hour)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.NotErrorIs(t, err, redlock.ErrHeld)
	assert.Contains(t, fmt.Sprint(err), "BUSY")
	err = f.release(l)
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	assert.NotErrorIs(t, err, redlock.ErrNotHeld)

	for i := range 2 {
		require.NoError(t, f.servers[i].Client().ScriptKill(f.ctx).Err())
	}
	for range 2 {
		assert.ErrorContains(t, <-loops, "killed")
	}
	f.gone(key)
	f.gone("held")
}

// flushUntilDone makes the servers lose their scripts again and again, until g is done.
func (f *fleet) flushUntilDone(g *errgroup.Group) {
	f.Helper()
	done := make(chan error, 1)
	go func() { done <- g.Wait() }()
	for {
		select {
		case err := <-done:
			require.NoError(f, err)
			return
		default:
			f.flushScripts()
		}
	}
}
