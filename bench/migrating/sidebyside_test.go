package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/redlock"
)

// pair is another library beside this one.
type pair struct {
	name    string
	open    func(*masters) other // on all masters, or on the first if that is all it can
	cfg     redlock.Config       // of ours
	masters int                  // that we use; the first of them is theirs too
	keys    []string             // of "job" on the masters, ours first; "job" itself if there are none
	weGet   bool                 // we get the lock while they have it
	theyGet bool                 // they get the lock while we have it
}

// pairs is the table of docs/migrating.md that says which libraries exclude each other.
var pairs = []pair{
	{name: "redsync", open: redsyncOther, masters: 5},
	{name: "redsync and Fencing", open: redsyncOther, cfg: redlock.Config{Fencing: true}, masters: 5},
	{name: "redsync and Fair", open: redsyncOther, cfg: redlock.Config{Fair: true}, masters: 5},
	{name: "redislock", open: redislockOther, masters: 1},
	{name: "redislock on one of three", open: redislockOther, masters: 3, weGet: true},
	{name: "rueidislock", open: rueidislockOther(2), masters: 1, weGet: true, theyGet: true,
		keys: []string{"job", "rueidislock:0:job", "rueidislock:1:job", "rueidislock:2:job"}},
	{name: "rueidislock with one key", open: rueidislockOther(1), masters: 1,
		cfg: redlock.Config{KeyPrefix: oneRueidisKey}, keys: []string{"rueidislock:0:job"}},
	{name: "RLock", open: rLockOther, masters: 1},
	{name: "RLock on one of three", open: rLockOther, masters: 3, weGet: true},
	{name: "RedissonRedLock", open: redLockOther, masters: 5},
	{name: "node-redlock", open: nodeRedlockOther, masters: 5},
}

// exclude reports whether the libraries exclude each other.
func (p pair) exclude() bool { return !p.weGet && !p.theyGet }

// nodeKeys returns all keys of a lock on "job", of both libraries.
func (p pair) nodeKeys() []string {
	if p.keys == nil {
		return []string{"job"}
	}
	return p.keys
}

// Each library tries to lock what the other has, in both directions. A refused client leaves the
// holder's keys alone and none of its own.
func TestSideBySide(t *testing.T) {
	all := startMasters(t, 5)
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			m := all.first(p.masters).in(t)
			ours, theirs := us(m.ours(p.cfg)), p.open(m)
			for _, d := range []struct {
				what           string
				holder, second other
				both           bool
			}{
				{"ours beside theirs", theirs, ours, p.weGet},
				{"theirs beside ours", ours, theirs, p.theyGet},
			} {
				t.Run(d.what, func(t *testing.T) {
					m := m.in(t)
					release := d.holder.lock(m, "job")
					if d.what == "theirs beside ours" {
						m.everywhere(p.nodeKeys()[0])
					}
					if d.both {
						d.second.lock(m, "job")()
					} else {
						d.second.refused(m, "job")
					}
					release()
					m.free(p.nodeKeys()...)
					d.second.lock(m, "job")()
					m.free(p.nodeKeys()...)
				})
			}
		})
	}
}

// ReleaseAfter keeps clients of other libraries out as it does ours.
func TestReleaseAfterKeepsOtherLibrariesOut(t *testing.T) {
	all := startMasters(t, 5)
	for _, p := range pairs {
		if !p.exclude() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			m := all.first(p.masters).in(t)
			key := "report of " + p.name
			l, err := m.ours(p.cfg).TryAcquire(m.ctx, key, ttl)
			require.NoError(t, err)
			m.everywhere(p.cfg.KeyPrefix + key)
			require.NoError(t, l.ReleaseAfter(m.ctx, ttl))
			p.open(m).refused(m, key)
		})
	}
}

// Clients of both libraries contend for one key, and never two are inside. All get their locks.
func TestSideBySideUnderContention(t *testing.T) {
	all := startMasters(t, 5)
	for _, p := range pairs {
		if !p.exclude() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			m := all.first(p.masters).in(t)
			var inside atomic.Int32
			var g errgroup.Group
			for _, client := range []other{us(m.ours(p.cfg)), us(m.ours(p.cfg)), p.open(m), p.open(m)} {
				g.Go(func() error {
					for range 10 {
						if err := cycle(m.ctx, client, &inside); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, g.Wait())
			m.free(p.nodeKeys()...)
		})
	}
}

// cycle locks "job", however often it is refused, and releases it.
func cycle(ctx context.Context, client other, inside *atomic.Int32) error {
	for ctx.Err() == nil {
		release, err := client(ctx, "job")
		if errors.Is(err, errRefused) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		n := inside.Add(1)
		for range 100 {
			runtime.Gosched()
		}
		inside.Add(-1)
		if err := release(ctx); err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%d clients had the lock", n)
		}
		return nil
	}
	return context.Cause(ctx)
}

// Our Acquire waits in the queue beside clients of redsync, whose releases wake nobody.
func TestAcquireGetsItsTurnsBesideRedsync(t *testing.T) {
	m := startMasters(t, 3)
	theirs := redsyncOther(m)
	ours := m.ours(redlock.Config{})
	var inside atomic.Int32
	var done atomic.Bool
	var g errgroup.Group
	g.Go(func() error {
		for !done.Load() {
			if err := cycle(m.ctx, theirs, &inside); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		defer done.Store(true)
		for range 3 {
			err := cycle(m.ctx, func(ctx context.Context, key string) (func(context.Context) error, error) {
				l, err := ours.Acquire(ctx, key, ttl)
				if err != nil {
					return nil, err
				}
				return l.Release, nil
			}, &inside)
			if err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, g.Wait())
	m.free("job")
}
