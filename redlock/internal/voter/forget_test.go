package voter

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/redlock/internal/asynclog"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// guardOf returns a Guard of some nodes, and a function that makes it meet a server that has
// been up for an hour.
func guardOf(period time.Duration, nodes int) (*Guard, func(node int, addr, run string, promoted bool) *Server) {
	g := NewGuard(clock.System(), period, clock.Drift{}, nodes, asynclog.New(slog.New(slog.DiscardHandler)), nil)
	return g, func(node int, addr, run string, promoted bool) *Server {
		s := g.Server(node, addr, addr)
		now := time.Now()
		s.Met(Info{Identity: Identity{run, "replication of " + run}, role: "master", uptime: time.Hour, promoted: promoted}, now, now)
		return s
	}
}

// The record of an address that left the Cluster is forgotten when the grants of that address are
// over. Until then another server there is quarantined, and a promoted one for ever.
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
				require.NoError(t, first.Eligibility(time.Now()))
				g.KeepMasters(0, map[string]bool{"b": true})
				time.Sleep(c.after)
				g.KeepMasters(0, map[string]bool{"b": true})
				err := meet(0, c.back, "second", c.promoted).Eligibility(time.Now())
				assert.Equal(t, c.quarantined, err != nil, "%v", err)
			})
		})
	}
}

// An address returns to the Cluster and leaves once more. It is remembered for another quarantine.
func TestGuardRemembersAnAddressThatCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * time.Second
		g, meet := guardOf(period, 1)
		meet(0, "a", "first", false)
		for range 3 {
			g.KeepMasters(0, nil)
			time.Sleep(period)
			g.KeepMasters(0, map[string]bool{"a": true})
			time.Sleep(period)
		}
		assert.Error(t, meet(0, "a", "second", false).Eligibility(time.Now()))
	})
}

// Two nodes are one server, and the first of them leaves its Cluster.
func TestGuardForgetsNoServerThatHasADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, meet := guardOf(0, 2)
		first, second := meet(0, "a", "run", false), meet(1, "b", "run", false)
		require.ErrorIs(t, second.Eligibility(time.Now()), errs.DuplicateNode)
		first.Disconnected()
		for range 2 {
			g.KeepMasters(0, nil)
			time.Sleep(time.Minute)
		}
		assert.Len(t, g.nodes[0], 1)
		assert.ErrorIs(t, second.Eligibility(time.Now()), errs.DuplicateNode, "nobody has asked since")

		assert.NoError(t, meet(1, "b", "run", false).Eligibility(time.Now()))
		g.KeepMasters(0, nil)
		assert.Empty(t, g.nodes[0])
	})
}

// A server that is listed twice identifies itself again and again. An attempt that checks
// meanwhile finds the duplicate each time.
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
		require.ErrorIs(t, g.Duplicate(), errs.DuplicateNode)
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
		require.ErrorIs(t, g.Duplicate(), errs.DuplicateNode)
		g.KeepMasters(1, nil)
		assert.NoError(t, g.Duplicate())
		time.Sleep(time.Minute)
		g.KeepMasters(1, nil)
		assert.Empty(t, g.nodes[1])
		assert.Zero(t, g.duplicates.Load())
	})
}
