package exact

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/sim"
)

func open(t *testing.T) *Lab {
	t.Helper()
	lab, err := Open(t.Context())
	require.NoError(t, err)
	return lab
}

// A seed makes one history, whatever ran before it, and in another lab, as on another machine. These
// seeds have bursts, which differ most often natively.
func TestASeedMakesOneHistory(t *testing.T) {
	first, second := open(t), open(t)
	histories := map[uint64]sim.Result{}
	for _, run := range []struct {
		lab  *Lab
		seed uint64
	}{{first, 2}, {first, 3}, {second, 2}, {first, 2}} {
		r, err := run.lab.Run(t.Context(), sim.Config{Seed: run.seed, Nodes: 3, Clients: 3, For: 300 * time.Millisecond, Faults: []sim.Kind{sim.Delay, sim.Crash}})
		require.NoError(t, err)
		require.NotEmpty(t, r.Events)
		assert.Empty(t, r.Violations)
		assert.Equal(t, run.seed, r.Plan.Config.Seed)
		assert.Equal(t, 3, r.Plan.Nodes)
		assert.NotZero(t, r.Granted)
		if before, known := histories[run.seed]; known {
			assert.Equal(t, before, r)
		}
		histories[run.seed] = r
	}
	assert.NotEqual(t, histories[2].Fingerprint(), histories[3].Fingerprint())
}

// The plan is the one that the seed has natively, and a violation is judged as it is there.
func TestAnExactRunIsOfTheSamePlan(t *testing.T) {
	c := sim.Config{Seed: 137, Nodes: 3, Clients: 2, For: 500 * time.Millisecond, Faults: []sim.Kind{sim.Amnesia}, Fencing: sim.Off, Guard: sim.Off}
	r, err := open(t).Run(t.Context(), c)
	require.NoError(t, err)
	plan, err := sim.Draw(c)
	require.NoError(t, err)
	assert.Equal(t, plan, r.Plan)
	assert.NotEmpty(t, r.Excused, "two holders, as a master forgot")
	assert.Empty(t, r.Violations)
}

func TestRunRefusesWhatCannotBeSimulated(t *testing.T) {
	lab := open(t)
	_, err := lab.Run(t.Context(), sim.Config{Nodes: 100})
	assert.ErrorContains(t, err, "nodes is 100")
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = lab.Run(ctx, sim.Config{Seed: 1})
	assert.ErrorIs(t, err, why)
}

func TestOpenSaysThatItNeedsTheSource(t *testing.T) {
	_, err := source(filepath.Join(t.TempDir(), "build.go"))
	assert.ErrorContains(t, err, "go run ./cmd/redlock-lab in a clone")
	t.Setenv("PATH", t.TempDir())
	_, err = Open(t.Context())
	assert.ErrorContains(t, err, "cannot build the simulation for WebAssembly")
}
