package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/redlock"
)

type statusFlags struct {
	connection
	json, values bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [flags] KEY",
		Short: "Show who holds a lock, for how long, and who waits",
		Long: `status asks every master what it knows of the lock KEY, and changes nothing. For
each it shows whether the key is held or free, the holder, when the key expires
unless it is renewed, how many wait in the queue, and the highest fencing token
that was granted. A ? is what the user may not see.

The holder is the beginning of a hash of the key's value: the same wherever one
lock is, and as run --verbose tells it. Whoever knows the value itself can
release the lock, so it is shown only with --show-value.

The verdict:
  held     a majority has one lock
  free     a majority has none: whoever comes next can have it
  split    neither. Several contenders have a part each, which they give back at
           once; what a dead one has left goes when it expires
  unknown  it depends on masters that could not tell

Exit status:
   0  held, free or split
  64  the command line is wrong; nobody was asked
  69  unknown: too few masters could tell`,
		Example: `  redlock status nightly-report
  redlock status nightly-report --json | jq -r .verdict`,
		Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			locks, err := f.open(redlock.Config{NodeTimeout: nodeTimeout})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, locks.Close()) }()
			seen, err := look(cmd.Context(), locks, args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if f.json {
				err = printJSON(out, newStatusReport(seen, f.values))
			} else {
				_, err = io.WriteString(out, inspected{seen}.show(coloured(out), f.values))
			}
			return errors.Join(err, conclusive(seen))
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object, for machines")
	cmd.Flags().BoolVar(&f.values, "show-value", false, "show the key's values; who knows one can\nrelease the lock")
	return cmd
}

// oneKey does not quote what it refuses: where --nodes was forgotten it is a URL with a
// password.
func oneKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usagef("KEY is missing: %s KEY (see %s --help)", cmd.CommandPath(), cmd.CommandPath())
	case len(args) > 1:
		return usagef("one KEY is wanted, not %d arguments (see %s --help)", len(args), cmd.CommandPath())
	case args[0] == "":
		return usagef("KEY is empty")
	}
	return nil
}

// look inspects a lock. All that can be wrong beside the end of ctx is the key.
func look(ctx context.Context, locks *redlock.Redlock, key string) (*redlock.Inspection, error) {
	seen, err := locks.Inspect(ctx, key)
	if err != nil && ctx.Err() == nil {
		return nil, &usageError{err}
	}
	return seen, err
}

// conclusive is an error if the masters' answers come to nothing.
func conclusive(seen *redlock.Inspection) error {
	if seen.Verdict() != redlock.VerdictUnknown {
		return nil
	}
	return &exitError{exitNoQuorum, fmt.Errorf("status %q: %s", printable(seen.Key), inspected{seen}.silence())}
}

// statusReport is --json. What a master could not tell, or may not, is left out.
type statusReport struct {
	Key     string       `json:"key"`
	Verdict string       `json:"verdict"`
	Holder  string       `json:"holder,omitempty"` // of the majority
	Need    int          `json:"need"`
	Nodes   []nodeReport `json:"nodes"`
}

type nodeReport struct {
	Addr    string  `json:"addr"`
	State   string  `json:"state"`
	Holder  string  `json:"holder,omitempty"`
	TTL     *int64  `json:"ttl_ms,omitempty"`  // -1: it does not expire
	Waiting *int    `json:"waiting,omitempty"` // how many stand in the queue
	Fence   *int64  `json:"fence,omitempty"`   // 0: none
	Error   string  `json:"error,omitempty"`
	Value   *string `json:"value,omitempty"`
}

func newStatusReport(seen *redlock.Inspection, values bool) *statusReport {
	holder, _ := seen.Holder()
	r := &statusReport{Key: seen.Key, Verdict: seen.Verdict().String(), Holder: holder, Need: seen.Need}
	for _, n := range seen.Nodes {
		report := nodeReport{Addr: n.Addr, State: stateOf(n), Holder: n.Holder}
		switch report.State {
		case stateFailed:
			report.Error = oneLine(n.Err)
		case stateHeld:
			ttl := max(n.TTL.Milliseconds(), -1)
			report.TTL = &ttl
			if value := n.Value(); values {
				report.Value = &value
			}
		}
		if n.Err == nil && n.Waiting >= 0 {
			report.Waiting = &n.Waiting
		}
		if n.Err == nil && n.Fence >= 0 {
			report.Fence = &n.Fence
		}
		r.Nodes = append(r.Nodes, report)
	}
	return r
}
