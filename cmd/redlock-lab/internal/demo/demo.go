// Package demo shows a lock at work, and what happens when masters die.
package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
)

// minTTL keeps a lock of the demo valid from one operation to the next on a slow machine or a slow
// network: a lock that expires in between shows nothing.
const minTTL = time.Second

type flags struct {
	nodes  masterlist.URLs
	prefix string
	ttl    time.Duration
	json   bool
}

// Command returns the subcommand demo.
func Command() *cobra.Command {
	var flags flags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a lock at work, and what happens when masters die",
		Long: `demo starts five in-memory Redis masters inside this process and takes a lock
on them: with all five up, with two dead, with three dead, and with all back. It
shows how each master voted, how long it took and what the grant is worth.
Nothing needs to be installed, and it takes a moment.

With --nodes it uses your masters instead: acquire, be refused as a second
client, extend, release. It kills nothing there, and its one key has a random
name and is gone afterwards.

A grant's validity is how long its holder may rely on it: the ttl, less the time
that it took to get it, less a margin for clocks that drift apart.

The exit status is 0 if every step went as it should, 1 if not, and 64 if the
command line is wrong.`,
		Example: `  redlock-lab demo
  redlock-lab demo --json | jq '.rounds[].nodes // empty'
  redlock-lab demo --nodes redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.ttl < minTTL {
				return cli.Usagef("--ttl %v is below %v: the lock must outlive the demo's steps", flags.ttl, minTTL)
			}
			var out presenter = jsonLines{cmd.OutOrStdout()}
			if !flags.json {
				out = text{cmd.OutOrStdout(), terminal.For(cmd.OutOrStdout())}
			}
			if cmd.Flags().Changed("nodes") {
				return demoOnMasters(cmd.Context(), flags.nodes, flags.prefix, flags.ttl, out)
			}
			return demoOutage(cmd.Context(), flags.ttl, out)
		},
	}
	cmd.Flags().Var(&flags.nodes, "nodes", "use these masters: redis://, rediss:// or unix:// URLs,\nseparated by commas or in several --nodes")
	cmd.Flags().StringVar(&flags.prefix, "prefix", "", "with --nodes: what the key begins with, for a user\nwho may touch no others")
	flags.ttl = 10 * time.Second
	cmd.Flags().Var((*cli.Duration)(&flags.ttl), "ttl", "how long masters keep the lock, from 1s up")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print one JSON object per step, for machines")
	return cmd
}

// presenter shows a demo to a person or a program.
type presenter interface {
	open(intro string) error
	step(s *step) error
	close(steps int) error
}

// scene is one step before it is played. play adds its rounds to the step, and returns an error if
// it did not go as it should.
type scene struct {
	title string
	play  func(ctx context.Context, s *step) error
}

// perform plays the scenes in order and stops at the first that goes wrong.
func perform(ctx context.Context, intro string, scenes []scene, out presenter) error {
	if err := out.open(intro); err != nil {
		return err
	}
	for i, sc := range scenes {
		s := &step{Number: i + 1, Title: sc.title}
		failed := sc.play(ctx, s)
		if failed == nil {
			s.OK = true
		} else {
			s.Problem = plain.Line(failed)
			failed = fmt.Errorf("demo failed at step %d (%s): %s", s.Number, s.Title, s.Problem)
		}
		if err := errors.Join(out.step(s), failed); err != nil {
			return err
		}
	}
	return out.close(len(scenes))
}

// unwanted describes an operation that did not end as it should.
func unwanted(got, want error) error {
	switch {
	case got == nil:
		return fmt.Errorf("granted, but it should have been %q", plain.Line(want))
	case want == nil:
		return got
	}
	return fmt.Errorf("should have been %q, but: %s", plain.Line(want), plain.Line(got))
}
