package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/lab/exact"
	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/lab/scenario"
	"github.com/quorumlock/redlock/internal/lab/timeline"
)

// goesWithScenario are the flags that go with --scenario. All others are settings of seeds.
var goesWithScenario = map[string]bool{"scenario": true, "exact": true, "html": true, "svg": true, "fingerprint": true, "quiet": true}

// play plays the scenario of --scenario, and shows its timeline and verdict.
func (f *flags) play(cmd *cobra.Command) error {
	var other string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !goesWithScenario[flag.Name] {
			other = flag.Name
		}
	})
	if other != "" {
		return cli.Usagef("--scenario does not go with --%s", other)
	}
	if !f.exact {
		return cli.Usagef("--scenario needs --exact: only an exact run makes the history that a page showed")
	}
	s, err := scenario.Parse(f.scenario)
	if err != nil {
		return cli.Usagef("--scenario: %w", err)
	}
	played, err := f.player.Play(cmd.Context(), s)
	if err != nil {
		return err
	}
	run, broken := acted(s, played)
	if err := f.draw(cmd, run); err != nil {
		return err
	}
	fingerprint := history.Fingerprint(played.Events)
	cmd.Printf("%s: %d actions, %d events until %v\nfingerprint %s\n", run.Verdict, len(s.Actions), len(played.Events), s.End(), fingerprint)
	switch {
	case f.fingerprint != "" && f.fingerprint != fingerprint:
		return errors.New("the scenario makes another history: the fingerprint is of other code, or of another scenario")
	case broken:
		return errViolated
	}
	return nil
}

// acted returns the timeline of a scenario, and whether the library broke a promise.
func acted(s scenario.Scenario, played exact.Played) (run timeline.Run, broken bool) {
	run = timeline.Run{
		Title: fmt.Sprintf("a scenario: %d masters, %d clients, ttl %v", s.Nodes, s.Clients, s.TTL),
		Nodes: s.Nodes, Clients: s.Clients, End: s.End() + time.Millisecond,
		Command: fmt.Sprintf("redlock-lab sim --exact --scenario '%v'", s),
		Events:  played.Events,
	}
	excused := 0
	for _, v := range played.Violations {
		text := v.Text
		if v.Excused != "" {
			excused++
			text += " (not promised: " + v.Excused + ")"
		}
		run.Violations = append(run.Violations, history.Violation{At: v.At, Rule: v.Rule, Text: text})
	}
	broken = len(played.Violations) > excused
	run.Verdict = violations(len(played.Violations) - excused)
	if excused > 0 {
		run.Verdict += fmt.Sprintf(" of what Redlock promises, and %d of what it does not", excused)
	}
	return run, broken
}
