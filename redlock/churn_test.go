package redlock

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// A master of a Cluster gets a new address again and again, as a Kubernetes pod does. What
// is kept of its addresses does not grow with their number.
func TestAcquireForgetsTheAddressesThatMastersLeft(t *testing.T) {
	const guard = 10 * time.Second
	for name, cfg := range map[string]Config{
		"without the guard": {NodeTimeout: 200 * time.Millisecond},
		"with the guard":    {NodeTimeout: 200 * time.Millisecond, RestartGuard: guard},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				masters := redlocktest.StartVirtual(t, 3)
				port := 0
				client := redis.NewClusterClient(&redis.ClusterOptions{
					ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
						addr := fmt.Sprintf("pod:%d", port)
						return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
					},
					NewClient: func(opt *redis.Options) *redis.Client {
						return masters.Master(2).Client(func(o *redis.Options) { o.Addr = opt.Addr })
					},
				})
				defer func() { assert.NoError(t, client.Close()) }()
				r, err := New([]redis.UniversalClient{masters.Master(0).Client(), masters.Master(1).Client(), client}, cfg)
				require.NoError(t, err)
				defer func() { assert.NoError(t, r.Close()) }()
				ctx := context.Background()
				carrier := r.nodes[2].carrier.(*cluster)
				ears := r.ears.stations[2].(*shards)
				time.Sleep(2 * guard) // the masters have been up for long

				const changes, every = 200, 500 * time.Millisecond
				for port = range changes {
					client.ReloadState(ctx)
					time.Sleep(every)
					l, err := r.TryAcquire(ctx, "key", time.Second)
					require.NoError(t, err)
					ears.tune(ears.channel("another key")) // as a wait does
					synctest.Wait()
					require.NoError(t, l.Release(ctx))
					synctest.Wait()
				}
				assert.LessOrEqual(t, len(carrier.conns), 1, "connections")
				assert.LessOrEqual(t, len(carrier.beside.clients), 2, "clients for subscriptions")
				ears.mu.Lock()
				assert.LessOrEqual(t, len(ears.all), 1, "subscriptions")
				ears.mu.Unlock()
				status := r.Nodes()[2].Servers
				assert.LessOrEqual(t, len(status), int((cfg.RestartGuard+2*time.Second)/every)+2, "servers")
				assert.Equal(t, fmt.Sprintf("pod:%d", port), status[len(status)-1].Addr)
			})
		})
	}
}

// guardOf is a guard of some nodes, and a way to meet a server of theirs that has been up
// for an hour.
func guardOf(period time.Duration, nodes int) (*guard, func(node int, addr, run string, promoted bool) *server) {
	g := newGuard(Config{Clock: clock.System(), RestartGuard: period}, nodes, newJournal(slog.New(slog.DiscardHandler)))
	return g, func(node int, addr, run string, promoted bool) *server {
		s := g.at(node, addr, addr)
		now := time.Now()
		s.meet(sighting{identity: identity{run, "replication of " + run}, role: "master", uptime: time.Hour, promoted: promoted}, now, now)
		return s
	}
}

// What an address that left the Cluster had granted is over before its record is forgotten.
// Until then another server there is quarantined, and a promoted one for ever.
func TestGuardRemembersAnAddressThatLeftForAQuarantine(t *testing.T) {
	const period = 10 * time.Second
	for name, c := range map[string]struct {
		after       time.Duration
		back        string
		promoted    bool
		quarantined bool
	}{
		"another server, within a quarantine":     {period + granularity - 1, "a", false, true},
		"another server, later":                   {period + granularity, "a", false, false},
		"a promoted server, later":                {period + granularity, "a", true, true},
		"a promoted server elsewhere, much later": {time.Hour, "c", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, meet := guardOf(period, 1)
				first := meet(0, "a", "first", false)
				require.NoError(t, first.standing(time.Now()))
				g.keep(0, map[string]bool{"b": true})
				time.Sleep(c.after)
				g.keep(0, map[string]bool{"b": true})
				err := meet(0, c.back, "second", c.promoted).standing(time.Now())
				assert.Equal(t, c.quarantined, err != nil, "%v", err)
			})
		})
	}
}

// An address that is the Cluster's again is remembered for another quarantine when it
// leaves once more.
func TestGuardRemembersAnAddressThatCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * time.Second
		g, meet := guardOf(period, 1)
		meet(0, "a", "first", false)
		for range 3 {
			g.keep(0, nil)
			time.Sleep(period)
			g.keep(0, map[string]bool{"a": true})
			time.Sleep(period)
		}
		assert.Error(t, meet(0, "a", "second", false).standing(time.Now()))
	})
}

// Two nodes are one server, and the first of them leaves its Cluster.
func TestGuardForgetsNoServerThatHasADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, meet := guardOf(0, 2)
		first, second := meet(0, "a", "run", false), meet(1, "b", "run", false)
		require.ErrorIs(t, second.standing(time.Now()), ErrDuplicateNode)
		first.leave()
		for range 2 {
			g.keep(0, nil)
			time.Sleep(time.Minute)
		}
		assert.Len(t, g.nodes[0], 1)
		assert.ErrorIs(t, second.standing(time.Now()), ErrDuplicateNode, "nobody has asked since")

		assert.NoError(t, meet(1, "b", "run", false).standing(time.Now()))
		g.keep(0, nil)
		assert.Empty(t, g.nodes[0])
	})
}

// A server that is listed twice identifies itself again and again. An attempt that looks
// meanwhile finds it each time.
func TestGuardFindsADuplicateWhileItIsMetAgain(t *testing.T) {
	g, meet := guardOf(0, 2)
	meet(0, "a", "run", false)
	meet(1, "b", "run", false)
	met := make(chan struct{})
	go func() {
		defer close(met)
		for range 100_000 {
			meet(1, "b", "run", false)
		}
	}()
	for {
		require.ErrorIs(t, g.duplicate(), ErrDuplicateNode)
		select {
		case <-met:
			return
		default:
		}
	}
}

// Two nodes are one server, and the second of them leaves its Cluster.
func TestGuardForgetsADuplicateThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, meet := guardOf(0, 2)
		meet(0, "a", "run", false)
		meet(1, "b", "run", false)
		require.ErrorIs(t, g.duplicate(), ErrDuplicateNode)
		g.keep(1, nil)
		assert.NoError(t, g.duplicate())
		time.Sleep(time.Minute)
		g.keep(1, nil)
		assert.Empty(t, g.nodes[1])
		assert.Zero(t, g.twins.Load())
	})
}
