package migrating_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
)

// oneRueidisKey is what our Config.KeyPrefix must be to use the key of a Locker whose KeyMajority is
// 1.
const oneRueidisKey = "rueidislock:0:"

// rueidisLocker makes a Locker on the first of the masters. It is closed with the test.
func (m *masters) rueidisLocker(keyMajority int32) rueidislock.Locker {
	m.Helper()
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{m.servers[0].Addr()}, ForceSingleClient: true},
		KeyMajority:    keyMajority,
		KeyValidity:    ttl,
		TryNextAfter:   time.Minute, // a loaded machine is slow
		NoLoopTracking: true,
	})
	require.NoError(m, err)
	m.Cleanup(l.Close)
	return l
}

// rueidislockOther has keyMajority of 2*keyMajority-1 keys on the first of the masters.
func rueidislockOther(keyMajority int32) func(*masters) other {
	return func(m *masters) other {
		l := m.rueidisLocker(keyMajority)
		return func(ctx context.Context, key string) (func(context.Context) error, error) {
			held, release, err := l.TryWithContext(context.WithoutCancel(ctx), key)
			if errors.Is(err, rueidislock.ErrNotLocked) {
				return nil, errRefused
			}
			if err != nil {
				return nil, err
			}
			return func(context.Context) error {
				lost := held.Err() // rueidislock reports a loss by the context alone
				release()
				return lost
			}, nil
		}
	}
}

// With the default of three keys, rueidislock begins with key 0, and gives up if another client has
// it. So a Redlock with that key seems to exclude it. But a Locker that has lost key 0, or has not
// got it within TryNextAfter, holds its lock by the other two.
func TestRueidislockWithThreeKeysIsNotExcludedByOneOfThem(t *testing.T) {
	m := startMasters(t, 1)
	ours := us(m.ours(redlock.Config{KeyPrefix: oneRueidisKey}))
	held, release, err := m.rueidisLocker(2).TryWithContext(m.ctx, "job")
	require.NoError(t, err)
	m.eventually(func() bool { return m.admin[0].Exists(m.ctx, "rueidislock:2:job").Val() == 1 }, "it is to have all keys")
	ours.refused(m, "job")
	require.NoError(t, m.admin[0].Del(m.ctx, "rueidislock:0:job").Err())
	giveBack := ours.lock(m, "job")
	assert.NoError(t, held.Err(), "there are two holders")
	giveBack()
	release()
}

// ForceWithContext takes the key from any holder. Our holder finds out at its next renewal.
func TestRueidislockForceTakesOurLockOver(t *testing.T) {
	m := startMasters(t, 1)
	ours, err := m.ours(redlock.Config{KeyPrefix: oneRueidisKey}).TryAcquire(m.ctx, "job", ttl)
	require.NoError(t, err)
	held, release, err := m.rueidisLocker(1).ForceWithContext(m.ctx, "job")
	require.NoError(t, err)
	defer release()
	require.ErrorIs(t, ours.Extend(m.ctx, ttl), redlock.ErrNotHeld)
	assert.NoError(t, held.Err())
}

// Three generations of a program follow each other: the first has only the lock of rueidislock, the
// second takes both locks, and the third has only ours. Neighbours exclude each other, so that at
// any time two of them may run. The first and the third do not.
func TestBothLocksBridgeLibrariesThatDoNotExclude(t *testing.T) {
	m := startMasters(t, 3)
	first := rueidislockOther(2)(m)
	third := us(m.ours(redlock.Config{}))
	second := bothLocks(first, third)
	keys := []string{"job", "rueidislock:0:job", "rueidislock:1:job", "rueidislock:2:job"}
	for _, c := range []struct {
		name string
		a, b other
	}{
		{"first and second", first, second},
		{"second and second", second, second},
		{"second and third", second, third},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := m.in(t)
			for _, pair := range [][2]other{{c.a, c.b}, {c.b, c.a}} {
				release := pair[0].lock(m, "job")
				pair[1].refused(m, "job")
				release()
				m.free(keys...)
			}
		})
	}
	release := first.lock(m, "job")
	third.lock(m, "job")()
	release()
}

// The same leads from one master to three, one of which is the old one. The new lock has a prefix, or
// it would find the old one of the same client on that master.
func TestBothLocksLeadFromOneMasterToThree(t *testing.T) {
	m := startMasters(t, 3)
	first := us(m.first(1).ours(redlock.Config{}))
	third := us(m.ours(redlock.Config{KeyPrefix: "new:"}))
	second := bothLocks(first, third)
	for _, pair := range [][2]other{{first, second}, {second, first}, {second, third}, {third, second}} {
		release := pair[0].lock(m, "job")
		pair[1].refused(m, "job")
		release()
		m.free("job", "new:job")
	}
	release := first.lock(m, "job")
	third.lock(m, "job")()
	release()
}

// bothLocks takes the old lock, then the new one, and releases them in the opposite order.
func bothLocks(older, newer other) other {
	return func(ctx context.Context, key string) (func(context.Context) error, error) {
		releaseOlder, err := older(ctx, key)
		if err != nil {
			return nil, err
		}
		releaseNewer, err := newer(ctx, key)
		if err != nil {
			return nil, errors.Join(err, releaseOlder(ctx))
		}
		return func(ctx context.Context) error {
			return errors.Join(releaseNewer(ctx), releaseOlder(ctx))
		}, nil
	}
}
