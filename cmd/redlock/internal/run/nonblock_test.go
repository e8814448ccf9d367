package run

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/testenv/faultlink"
	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// Five hosts with the same crontab try at one instant, and their requests reach the masters in
// different orders. One of them runs the command.
func TestNonblockAtOneInstant(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		hosts := b.ReadyParties(5, redlock.Config{})
		for _, host := range hosts {
			for _, path := range host.Paths {
				path.Shape(func(faultlink.Direction) (time.Duration, bool) { return rand.N(2 * time.Millisecond), false })
			}
		}
		f := &flags{ttl: cli.Duration(runTTL), wait: -1, nonblock: true, conflict: cli.ExitBusy, output: output{quiet: true}}
		p := newPrinter(io.Discard, virtual.Key, f.output)
		defer p.close()
		for round := range 20 {
			var got atomic.Int32
			var running sync.WaitGroup
			for _, host := range hosts {
				running.Go(func() {
					lock, err := f.acquire(context.Background(), host.Redlock, virtual.Key, nil, p)
					if err == nil {
						got.Add(1)
						time.Sleep(5 * time.Second)
						assert.NoError(b, lock.Release(context.Background()))
						return
					}
					var exit *cli.ExitError
					assert.ErrorAs(b, err, &exit)
					assert.Equal(b, cli.ExitBusy, exit.Code)
				})
			}
			running.Wait()
			require.EqualValues(b, 1, got.Load(), "round %d", round)
			time.Sleep(time.Second)
		}
	})
}
