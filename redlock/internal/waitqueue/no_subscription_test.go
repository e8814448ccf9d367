package waitqueue_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/virtual"
	"github.com/quorumlock/redlock/redlock"
)

// If servers permit no SUBSCRIBE, or have none, a waiter looks after pauses of at most 100 ms. The
// log reports each such server once.
func TestAcquireWithoutSubscriptions(t *testing.T) {
	for _, refusal := range []string{
		"NOPERM this user has no permissions to run the 'subscribe' command",
		"ERR unknown command 'subscribe', with args beginning with: 'redlock:wake:'",
	} {
		virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
			var log bytes.Buffer
			cfg := redlock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			for _, m := range b.Masters.All() {
				m.RefuseSubscriptions(refusal)
			}
			holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(2, cfg)
			for range 3 {
				l := b.Hold(holder, time.Hour)
				queue := b.WaitInTurn(parties, key, 50*time.Millisecond)
				time.Sleep(time.Second)
				tape := b.Record(parties...)
				time.Sleep(10 * time.Second)
				for _, c := range virtual.WithoutPings(tape.Count()) {
					assert.LessOrEqual(b, c["try"]+c["enqueue"]+c["dequeue"]+c["SET"]+c["release"], 10*5*2*25, "%v: a try each 50 ms on the average", c)
					assert.LessOrEqual(b, c["SUBSCRIBE"], 5)
				}
				released := time.Now()
				b.Release(l)
				virtual.Finish(b, queue...)
				assert.LessOrEqual(b, time.Since(released), 2*100*time.Millisecond+10*time.Millisecond)
				b.NoQueues()
			}
			b.Settle()
			assert.Equal(b, 2*5, strings.Count(log.String(), "node does not let us queue"), "once for each node and Redlock")
		})
	}
}

// With two of five such nodes no waiter needs to look: a majority wakes it.
func TestAcquireWithoutSubscriptionsToAMinority(t *testing.T) {
	virtual.Run(t, 5, redlock.Config{}, func(b *virtual.Bed) {
		holder, parties := b.ReadyParty(redlock.Config{}), b.ReadyParties(3, redlock.Config{})
		for _, i := range []int{1, 4} {
			b.Masters.Master(i).RefuseSubscriptions("NOPERM no")
		}
		l := b.Hold(holder, time.Hour)
		queue := b.WaitInTurn(parties, key, 300*time.Millisecond)
		time.Sleep(500 * time.Millisecond)
		tape := b.Record(parties...)
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(b, tape.Total(), 3*(10+2*5))
		handOver(b, l, queue, virtual.NodeTimeout)
		b.NoQueues()
	})
}

// A subscription may be refused for a while: a script runs too long, or there are too many clients.
// That is no denial of rights. It is tried again within a second, and the log does not mention
// rights. If rights are denied later, the log reports that.
func TestAcquireRetriesASubscriptionRefusedForAWhile(t *testing.T) {
	for _, refusal := range []string{
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"ERR max number of clients reached",
		"CLUSTERDOWN The cluster is down",
		"WRONGPASS invalid username-password pair or user is disabled.",
	} {
		virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
			var log bytes.Buffer
			cfg := redlock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(cfg)
			l := b.Hold(holder, time.Hour)
			for _, m := range b.Masters.All() {
				m.RefuseSubscriptions(refusal)
			}
			tape := b.Record(p)
			w := p.Wait(key, ttl)
			time.Sleep(10 * time.Second)
			assert.LessOrEqual(b, tape.Count()[p.Name]["SUBSCRIBE"], 3*(7+10), "pauses that double, up to a second")
			for _, m := range b.Masters.All() {
				m.RefuseSubscriptions("")
			}
			time.Sleep(time.Second + 20*time.Millisecond)
			tape.Count()
			time.Sleep(10 * time.Second)
			assert.LessOrEqual(b, virtual.WithoutPings(tape.Count())[p.Name]["try"], 0, "it is woken, and does not poll")
			released := time.Now()
			require.NoError(b, l.Release(ctx))
			b.Release(w.Hold())
			assert.Zero(b, w.Got.Sub(released))
			b.Settle()
			require.NotContains(b, log.String(), "node does not let us queue", refusal)

			l = b.Hold(holder, time.Hour)
			for _, m := range b.Masters.All() {
				m.RefuseSubscriptions("NOPERM no")
				m.BreakSubscriptions()
			}
			w = p.Wait(key, ttl)
			time.Sleep(time.Second)
			b.Release(l)
			b.Release(w.Hold())
			b.Settle()
			assert.Equal(b, 3, strings.Count(log.String(), "node does not let us queue"), refusal)
		})
	}
}

// When SUBSCRIBE is permitted again, the waiters notice within a minute, and look no more.
func TestAcquireSubscribesOnceItIsPermittedAgain(t *testing.T) {
	virtual.Run(t, 3, redlock.Config{}, func(b *virtual.Bed) {
		holder, p := b.ReadyParty(redlock.Config{}), b.ReadyParty(redlock.Config{})
		for _, m := range b.Masters.All() {
			m.RefuseSubscriptions("NOPERM no")
		}
		l := b.Hold(holder, time.Hour)
		w := p.Wait(key, ttl)
		time.Sleep(5 * time.Second)
		for _, m := range b.Masters.All() {
			m.RefuseSubscriptions("")
		}
		time.Sleep(time.Minute)
		tape := b.Record(p)
		time.Sleep(24 * time.Second)
		assert.LessOrEqual(b, virtual.WithoutPings(tape.Count())[p.Name]["enqueue"], 3)
		released := time.Now()
		require.NoError(b, l.Release(ctx))
		b.Release(w.Hold())
		assert.Zero(b, w.Got.Sub(released))
		b.NoQueues()
	})
}
