package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/lab/exact"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/sim"
)

// lab simulates seeds.
type lab interface {
	Run(context.Context, sim.Config) (sim.Result, error)
}

// player plays scenarios.
type player interface {
	Play(context.Context, scenario.Scenario) (exact.Played, error)
}

// nativeLab is the simulation in this process.
type nativeLab struct{}

func (nativeLab) Run(_ context.Context, c sim.Config) (sim.Result, error) { return sim.Watched(c) }

// exactLab makes exact runs. The first one compiles the simulation.
type exactLab struct {
	compile func() (*exact.Lab, error)
}

func newExactLab(cmd *cobra.Command, f *flags) exactLab {
	return exactLab{sync.OnceValues(func() (*exact.Lab, error) {
		if !f.quiet {
			cmd.PrintErrln("compiling the simulation to WebAssembly, which takes a minute or two the first time")
		}
		return exact.Open(cmd.Context())
	})}
}

// hangs is far above what an exact run takes. A run that takes longer spins.
const hangs = time.Hour

func (l exactLab) Run(ctx context.Context, c sim.Config) (sim.Result, error) {
	compiled, err := l.compile()
	if err != nil {
		return sim.Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, hangs, fmt.Errorf("a run does not end: %s", command(c, true)))
	defer cancel()
	return compiled.Run(ctx, c)
}

func (l exactLab) Play(ctx context.Context, s scenario.Scenario) (exact.Played, error) {
	compiled, err := l.compile()
	if err != nil {
		return exact.Played{}, err
	}
	return compiled.Play(ctx, s)
}

// command returns the command line that makes a history again.
func command(c sim.Config, exactly bool) string {
	if exactly {
		return c.Command("--exact")
	}
	return c.Command()
}
