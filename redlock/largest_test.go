package redlock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// almost are durations to which nothing can be added, or next to nothing.
var almost = []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - time.Second, math.MaxInt64 / 100 * 99}

// A field with the largest duration means what it says: sums of durations do not wrap
// around.
func TestAcquireWithTheLargestDurations(t *testing.T) {
	for _, most := range almost {
		for name, cfg := range map[string]redlock.Config{
			"NodeTimeout":    {NodeTimeout: most},
			"FenceRetention": {FenceRetention: most, Fencing: true},
			"ttl":            {Drift: clock.Drift{Floor: 1}},
			"ttl, fenced":    {FenceRetention: most, Fencing: true},
			"Drift.Factor":   {Drift: clock.Drift{Factor: 0.99}},
		} {
			virtual.Run(t, 3, cfg, func(b *virtual.Bed) {
				ttl := ttl
				if name != "NodeTimeout" && name != "FenceRetention" {
					ttl = most
				}
				start := time.Now()
				l, err := b.Redlock.TryAcquire(ctx, key, ttl)
				require.NoError(b, err, "%s %v", name, most)
				left := clock.Validity(ttl.Truncate(time.Millisecond), 0, cfg.Drift)
				if cfg.Drift == (clock.Drift{}) {
					left = clock.Validity(ttl.Truncate(time.Millisecond), 0, clock.DefaultDrift)
				}
				assert.Equal(b, left, l.Until().Sub(start), "%s %v", name, most)
				require.NoError(b, l.Extend(ctx, ttl))
				l.KeepAlive()
				b.Settle()
				require.NoError(b, l.Context().Err())
				waiting, stop := context.WithCancel(ctx)
				done := make(chan error)
				go func() {
					_, err := b.NewRedlock(cfg).Acquire(waiting, key, ttl)
					done <- err
				}()
				b.Settle()
				stop()
				require.ErrorIs(b, <-done, context.Canceled)
				b.Release(l)
			})
		}
	}
}

// A guard of the largest duration keeps out everything that has not been up for that long,
// which is everything.
func TestAcquireWithTheLargestGuard(t *testing.T) {
	for _, most := range almost {
		for name, cfg := range map[string]redlock.Config{
			"the drift is a part": {RestartGuard: most},
			"the drift is fixed":  {RestartGuard: most, Drift: clock.Drift{Floor: time.Second}},
		} {
			virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
				s := b.NewRedlock(cfg)
				_, err := s.TryAcquire(ctx, key, ttl)
				require.ErrorIs(b, err, redlock.ErrNoQuorum, "%s %v", name, most)
				assert.ErrorContains(b, err, "quarantined for", "%s %v", name, most)
				assert.True(b, s.Nodes()[0].Servers[0].Quarantine.After(time.Now().AddDate(200, 0, 0)))
			})
		}
	}
}
