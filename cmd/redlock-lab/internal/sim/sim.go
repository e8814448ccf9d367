// Package sim is the subcommand that runs the simulation in internal/lab/sim.
package sim

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/cmd/redlock-lab/internal/site"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/lab/sim"
)

type flags struct {
	seed      uint64
	seeds     string
	config    sim.Config
	faults    string
	html, svg string
	stopAfter time.Duration
	first     bool
	shrink    bool
	fencing   bool
	guard     bool
	fair      bool
	ways      bool
	quiet     bool
	exact     bool

	fingerprint string
	scenario    string

	native, exactly lab
	player          player
}

// Command returns the subcommand sim.
func Command() *cobra.Command {
	var flags flags
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate clients and masters under faults, and judge the locks",
		Long: `sim runs whole clients of this library against in-memory masters in virtual
time, and breaks what can break: networks, masters, clients and clocks. A seed
draws all of it. Then sim judges what happened: whether two clients ever held
one lock, whether everybody got it in the end, whether anything was left behind.

One seed prints its timeline, or writes it with --html or --svg, and then the
verdict and the fingerprint of the history. --seeds runs many seeds, and prints
what failed and how to repeat it.

The same build usually makes the same history of a seed. On a busy machine it
can be another one, and with the race detector it is. --fingerprint repeats the
seed, up to ` + strconv.Itoa(repeats) + ` times, until it makes that very history.

With --exact the same source and Go release make the same history of a seed on
every machine, with a fingerprint of its own. The simulation then runs as
WebAssembly, which takes ten times as long. The Go command compiles it first,
from its source, which takes a minute or two the first time. With --shrink a
seed that fails natively is run exactly, too.

With --scenario a person has decided what happens: the query after # in the
address of a page of redlock-lab serve, which shows the same history. "Copy as
command" on the page gives the whole line.

Flags that are not given are drawn from the seed. These faults are within what
Redlock promises:
` + kindList(sim.Within) + `.
These are beyond it; sim shows and counts the violations that they explain, but
does not fail because of them:
` + kindList(sim.Beyond) + `.
Some runs end with a trial, in which some clients are sick for a long time:
` + kindList(sim.Trials) + `.
--faults also takes within, beyond, trials and none.

The exit status is 0 if the locks excluded, 1 after a violation, and 64 if the
command line is wrong.`,
		Example: `  redlock-lab sim --seed 42
  redlock-lab sim --seed 42 --nodes 5 --clients 4 --for 3s --html run.html
  redlock-lab sim --seeds 1-2000`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			exactly := newExactLab(cmd, &flags)
			flags.native, flags.exactly, flags.player = nativeLab{}, exactly, exactly
			if cmd.Flags().Changed("scenario") {
				return flags.play(cmd)
			}
			return flags.run(cmd)
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&flags.seed, "seed", 1, "the `number` that all is drawn from")
	f.StringVar(&flags.seeds, "seeds", "", "run all seeds of a `range` such as 1-2000,\nwithout timelines")
	f.IntVar(&flags.config.Nodes, "nodes", 0, "how many masters")
	f.IntVar(&flags.config.Clients, "clients", 0, "how many clients")
	f.Var((*cli.Duration)(&flags.config.For), "for", "how long there are faults, in virtual time")
	f.StringVar(&flags.faults, "faults", "", "the `kinds` of faults that may happen,\nseparated by commas")
	f.BoolVar(&flags.fencing, "fencing", false, "whether locks have fencing tokens")
	f.BoolVar(&flags.fair, "fair", false, "whether a newcomer joins the queue of a key if\nthere is one")
	f.BoolVar(&flags.ways, "ways", false, "whether clients use ReleaseAfter, handles,\nnested locks and elections; drawn only if\n--faults is")
	f.BoolVar(&flags.guard, "guard", false, "whether clients have the restart guard, as\nlong as the longest ttl")
	f.IntSliceVar(&flags.config.Without, "without", nil, "leave these planned faults out, by their\n`numbers`")
	f.StringVar(&flags.html, "html", "", "write the timeline as a page to `file`")
	f.StringVar(&flags.svg, "svg", "", "write the timeline as a picture to `file`")
	f.Var((*cli.Duration)(&flags.stopAfter), "stop-after", "with --seeds: begin no run later than this")
	f.BoolVar(&flags.first, "first", false, "with --seeds: stop at the first violation")
	f.BoolVar(&flags.shrink, "shrink", false, "after a violation look for a smaller history\nthat shows it")
	f.StringVar(&flags.fingerprint, "fingerprint", "", "repeat the seed until it makes the history\nwith this `fingerprint`")
	f.BoolVar(&flags.exact, "exact", false, "make the same history of a seed on every\nmachine")
	f.StringVar(&flags.scenario, "scenario", "", "with --exact: play what a page of redlock-lab\nserve has in its address, the `query` after #")
	f.BoolVarP(&flags.quiet, "quiet", "q", false, "print the verdict alone")
	f.Lookup("for").DefValue, f.Lookup("stop-after").DefValue = "", ""
	return cmd
}

// kindList is a list of kinds for the help, in lines of its width.
func kindList(kinds []sim.Kind) string {
	var s strings.Builder
	width := 0
	for i, k := range kinds {
		switch width += len(k) + len(", "); {
		case i == 0:
		case width > 72:
			s.WriteString(",\n")
			width = len(k)
		default:
			s.WriteString(", ")
		}
		s.WriteString(string(k))
	}
	return s.String()
}

var errViolated = errors.New("the locks did not hold what they promise")

func (f *flags) run(cmd *cobra.Command) error {
	if cmd.Flags().Changed("faults") {
		kinds, err := sim.ParseKinds(f.faults)
		if err != nil {
			return cli.Usagef("--faults: %w", err)
		}
		f.config.Faults = kinds
	}
	f.config.Fencing = given(cmd, "fencing", f.fencing)
	f.config.Guard = given(cmd, "guard", f.guard)
	f.config.Fair = given(cmd, "fair", f.fair)
	f.config.Ways = given(cmd, "ways", f.ways)
	if f.seeds != "" {
		if cmd.Flags().Changed("seed") || f.html+f.svg+f.fingerprint != "" || len(f.config.Without) > 0 {
			return cli.Usagef("--seeds goes with none of --seed, --fingerprint, --html, --svg and --without")
		}
		from, to, err := seedRange(f.seeds)
		if err != nil {
			return err
		}
		if err := f.begin(from); err != nil {
			return err
		}
		return f.many(cmd, from, to)
	}
	if f.first || f.stopAfter != 0 {
		return cli.Usagef("--first and --stop-after go with --seeds")
	}
	if cmd.Flags().Changed("fingerprint") && !aFingerprint.MatchString(f.fingerprint) {
		return cli.Usagef("--fingerprint is %q, want 16 hexadecimal digits, as sim prints them", f.fingerprint)
	}
	if err := f.begin(f.seed); err != nil {
		return err
	}
	return f.one(cmd)
}

// begin sets the first seed. A config that cannot be simulated is an error before anything is compiled.
func (f *flags) begin(seed uint64) error {
	f.config.Seed = seed
	if _, err := sim.Draw(f.config); err != nil {
		return &cli.UsageError{Err: err}
	}
	return nil
}

// lab returns the lab that the flags ask for.
func (f *flags) lab() lab {
	if f.exact {
		return f.exactly
	}
	return f.native
}

// given returns the value of a flag, or Drawn if it is not set.
func given(cmd *cobra.Command, name string, on bool) sim.Switch {
	switch {
	case !cmd.Flags().Changed(name):
		return sim.Drawn
	case on:
		return sim.On
	}
	return sim.Off
}

// seedRange reads "1-2000", or a single number.
func seedRange(s string) (from, to uint64, err error) {
	first, last, ranged := strings.Cut(s, "-")
	if !ranged {
		last = first
	}
	if from, err = strconv.ParseUint(first, 10, 64); err == nil {
		to, err = strconv.ParseUint(last, 10, 64)
	}
	if err != nil || from > to {
		return 0, 0, cli.Usagef("--seeds is %q, want a range such as 1-2000", s)
	}
	return from, to, nil
}

// repeats is how often a seed is run to find a fingerprint again. On an idle machine the first run
// nearly always makes it. On a busy one, nine of ten runs with bursts do.
const repeats = 20

// aFingerprint matches what [sim.Result.Fingerprint] returns.
var aFingerprint = regexp.MustCompile(`^[0-9a-f]{16}$`)

// one runs a single seed, and shows its timeline and verdict.
func (f *flags) one(cmd *cobra.Command) error {
	r, err := f.lab().Run(cmd.Context(), f.config)
	for tries := 1; err == nil && f.fingerprint != "" && r.Fingerprint() != f.fingerprint; tries++ {
		switch {
		case cmd.Context().Err() != nil:
			return context.Cause(cmd.Context())
		case f.exact:
			return errors.New("the seed makes another history: the fingerprint is of other code or flags, or of a run without --exact")
		case tries == repeats:
			return fmt.Errorf("the seed made other histories %d times: the fingerprint is of other code or flags, or of a run with --exact, or the machine is too busy", tries)
		case !f.quiet:
			cmd.PrintErrf("run %d of %d made another history, %s\n", tries, repeats, r.Fingerprint())
		}
		r, err = f.lab().Run(cmd.Context(), f.config)
	}
	if err != nil {
		return err
	}
	if err := f.show(cmd, r); err != nil {
		return err
	}
	cmd.Printf("%s: %d acquisitions, %d locks, %d faults, %d events\nfingerprint %s\n", verdict(r), r.Asked, r.Granted, len(r.Plan.Faults), len(r.Events), r.Fingerprint())
	if len(r.Violations) == 0 {
		return nil
	}
	f.explain(cmd, r)
	return errViolated
}

// many runs a range of seeds.
func (f *flags) many(cmd *cobra.Command, from, to uint64) error {
	var tally sim.Tally
	failed := 0
	began := time.Now()
	for seed := from; ; seed++ {
		c := f.config
		c.Seed = seed
		r, err := f.lab().Run(cmd.Context(), c)
		if err != nil {
			cmd.Printf("seeds before %d: %d with violations; %s\n", seed, failed, tally.String())
			return err
		}
		tally.Add(r)
		if len(r.Violations) > 0 {
			failed++
			f.explain(cmd, r)
		}
		enough := f.first && failed > 0 || f.stopAfter > 0 && time.Since(began) >= f.stopAfter
		if enough || seed == to || cmd.Context().Err() != nil {
			cmd.Printf("seeds %d-%d: %d with violations; %s\n", from, seed, failed, tally.String())
			break
		}
	}
	if failed > 0 {
		return errViolated
	}
	return context.Cause(cmd.Context())
}

// explain prints the first violation, and how to reproduce it. With --shrink it also runs a native
// failure exactly, and looks for a smaller history: among exact runs if the exact run breaks the same
// rule first, otherwise among native ones. An exact failure comes with a link to the page that shows it.
func (f *flags) explain(cmd *cobra.Command, r sim.Result) {
	c := r.Plan.Config
	cmd.Printf("seed %d: %d violations, the first: %v\n  %s --fingerprint %s\n", c.Seed, len(r.Violations), r.Violations[0], command(c, f.exact), r.Fingerprint())
	if f.exact {
		link(cmd, c)
	}
	if !f.shrink {
		return
	}
	fails := func(other sim.Result) bool {
		return len(other.Violations) > 0 && other.Violations[0].Rule == r.Violations[0].Rule
	}
	lab, exactly := f.lab(), f.exact
	if !exactly {
		switch same, err := f.exactly.Run(cmd.Context(), c); {
		case err != nil:
			cmd.PrintErrf("no exact run: %v\n", err)
		case fails(same):
			lab, exactly = f.exactly, true
			cmd.Printf("  exact: %s --fingerprint %s\n", command(c, true), same.Fingerprint())
			link(cmd, c)
		default:
			cmd.Printf("  an exact run of the seed does not break this rule first\n")
		}
	}
	smaller, err := sim.Shrink(c, func(c sim.Config) (sim.Result, error) { return lab.Run(cmd.Context(), c) }, fails)
	if err != nil {
		cmd.PrintErrf("not shrunk: %v\n", err)
		return
	}
	cmd.Printf("  smaller: %s\n", command(smaller, exactly))
	if exactly {
		link(cmd, smaller)
	}
}

// link prints how to see an exact run in a browser.
func link(cmd *cobra.Command, c sim.Config) {
	cmd.Printf("  watch it: redlock-lab serve, then %s\n", site.Link(c.Query()))
}
