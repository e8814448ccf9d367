package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// A client with a shorter FenceRetention shortens nobody's fence, whether it is granted,
// refused, renews, or waits. Nor does it give a fence that is kept for ever an end.
func TestAcquireNeverShortensAFence(t *testing.T) {
	const long, short = 24 * time.Hour, time.Minute
	for _, fair := range []bool{false, true} {
		for what, offset := range map[string]time.Duration{"granted": 0, "too low at first": -time.Hour} {
			t.Run(fmt.Sprintf("%s, fair %t", what, fair), func(t *testing.T) {
				virtual.Run(t, 3, redlock.Config{Fencing: true, FenceRetention: long}, func(b *virtual.Bed) {
					hasty := b.NewRedlock(redlock.Config{
						Fencing: true, FenceRetention: short, Fair: fair, Clock: clock.Skewed(clock.System(), 1, offset),
					})
					b.Release(b.Take(b.Redlock))
					require.NoError(b, b.Redis(2).Set(fenceKey, "5")) // for ever
					kept := func(when string) {
						b.Helper()
						b.Settle()
						for i, want := range []time.Duration{long, long, 0} {
							assert.Equal(b, want, b.Redis(i).TTL(fenceKey).Round(time.Minute), "%s, node %d", when, i)
						}
					}
					time.Sleep(time.Millisecond)
					l := b.Take(hasty)
					kept("acquired")
					require.NoError(b, l.Extend(ctx, ttl))
					kept("extended")
					b.Redis(0).Del(key)
					require.NoError(b, l.Extend(ctx, ttl))
					kept("topped up")
					done := make(chan *redlock.Lock)
					go func() {
						l, err := hasty.Acquire(ctx, key, ttl)
						assert.NoError(b, err)
						done <- l
					}()
					time.Sleep(100 * time.Millisecond)
					b.Release(l)
					l = <-done
					kept("waited")
					b.Release(l)
					kept("released")
				})
			})
		}
	}
}

// Tokens grow for as long as the longest retention of any client says, however many
// clients with shorter ones use the key.
func TestTokensGrowBesideAShorterRetention(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{Fencing: true, FenceRetention: 24 * time.Hour}, func(b *virtual.Bed) {
		hasty := b.NewRedlock(redlock.Config{Fencing: true, FenceRetention: time.Minute})
		high := b.Take(fenced(b, 3*time.Hour))
		b.Release(high)
		l := b.Take(hasty)
		require.Greater(b, l.FencingToken(), high.FencingToken())
		b.Release(l)
		time.Sleep(2 * time.Minute) // longer than the shorter retention
		next := b.Take(b.Redlock)
		assert.Greater(b, next.FencingToken(), l.FencingToken())
		b.Release(next)
	})
}
