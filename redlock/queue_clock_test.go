package redlock_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Four clients take the lock again and again, and each has its share, however far their
// clocks are apart: a day, decades, or beyond what is a time at all.
func TestAcquireTakesTurnsHoweverWrongTheClocks(t *testing.T) {
	virtual.Crowded(t)
	const hour, year = time.Hour, 365 * 24 * time.Hour // a bubble's time begins in 2000
	for name, offsets := range map[string][]time.Duration{
		"one 25 h ahead":           {0, 0, 25 * hour, 0},
		"two 25 h behind":          {0, -25 * hour, 0, -25 * hour},
		"one years ahead":          {0, 0, 50 * year, 0},
		"one in 1970, one in 2200": {0, -30 * year, 200 * year, 0},
		"one in 1800":              {0, 0, -200 * year, 0},
	} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Fair %v", name, fair), func(t *testing.T) {
				virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
					var all []*virtual.Party
					for i, offset := range offsets {
						cfg := by(offset)
						cfg.Fair = fair
						all = append(all, b.ReadyParty(cfg))
						jitterPaths(all[i], uint64(i), 2*time.Millisecond)
					}
					const turns, before = 60, 20 // by then they know the clocks
					each := make([]int, len(all))
					for _, i := range loop(b, all, turns)[before:turns] {
						each[i]++
					}
					for _, n := range each {
						assert.InDelta(b, 10, n, 2, "%v", each)
					}
					b.NoQueues()
				})
			})
		}
	}
}

// Scores that are no tickets, and members that are nobody, are skipped, whatever they are.
// They hide the tickets below them from nobody: a clock that is behind finds out. One that
// a node cannot tell has a second, as any has.
func TestAcquireWithGarbageInTheQueue(t *testing.T) {
	inf := math.Inf(1)
	for name, score := range map[string]float64{
		"the highest": inf, "the lowest": -inf, "far ahead": 9e15, "huge": 1e300, "negative": -9e15, "tiny": 0.5,
		"a fraction": 946684800000000.5, "first": 1e14 + 0.5,
	} {
		for _, member := range []string{"nobody here", "", " ", "@", "@nobody x", "{x}y z", "\xff\x00"} {
			t.Run(fmt.Sprintf("%s %q", name, member), func(t *testing.T) {
				virtual.Run(t, 1, redlock.Config{}, func(b *virtual.Bed) {
					parties := append(b.ReadyParties(1, redlock.Config{}), b.ReadyParty(by(-25*time.Hour)))
					l := b.Hold(b.ReadyParty(redlock.Config{}), time.Hour)
					_, err := b.Redis(0).ZAdd("redlock:queue:{"+key+"}", score, member)
					require.NoError(b, err)
					require.NoError(b, b.Redis(0).Set("redlock:queued:{"+key+"}", "1"))
					queue := b.WaitInTurn(parties, key, 100*time.Millisecond)
					released := time.Now()
					require.Equal(b, []int{0, 1}, order(b, l, queue))
					assert.LessOrEqual(b, queue[1].Got.Sub(released), time.Second+20*time.Millisecond)
				})
			})
		}
	}
}
