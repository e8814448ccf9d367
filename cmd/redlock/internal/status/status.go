// Package status shows a lock's holder, its remaining time and its waiters.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/cmd/redlock/internal/watch"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/redlock"
)

type flags struct {
	masterlist.Flags
	watch             watch.Flag
	json, values      bool
	quiet, held, free bool // print nothing: the exit status is the answer
}

// Command returns the subcommand status.
func Command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "status [flags] KEY",
		Short: "Show who holds a lock, for how long, and who waits",
		Long: `status asks every master about the lock KEY, and changes nothing. For each
master it shows whether the key is held or free, the holder, when the key
expires unless it is renewed, how many wait in the queue, and the highest
fencing token that was granted. A ? stands for a value that the user may not
see.

The holder is shown as the beginning of a hash of the key's value. It is the
same on all masters that have the lock, and run --verbose prints it too. Below
the table each holder's owner is named, as run --owner or Config.Owner sets it,
and since when it has the lock, by its own clock. A client that knows the value
itself can release the lock, so the value is shown only with --show-value.

The verdict:
  held     a majority has the same lock
  free     a majority has no lock: the next client can get it
  split    neither. Several clients have some masters each, and give them back
           at once; if one of them died, its keys go when they expire
  foreign  the key is a hash, a list or the like. No client can have a lock of
           this name until somebody deletes the key
  unknown  it depends on masters that could not tell

A key that never expires, or whose value is not a UUID, keeps other clients out
as a lock does. Another program probably wrote it; status reports such a key.

--watch looks again and again, until ^C. On a terminal it shows the same text in
place; elsewhere it prints one text after the other, or with --json one object a
line. It goes on while too few masters can tell. It then exits with 0.

--held and --free test one verdict, as test(1) does. Of a split or foreign key
neither is true.

Exit status:
   0  held, free or split; with --quiet only free; with --held and --free: true
   1  foreign; with --held and --free: certainly not true
  64  the command line is wrong; no master was asked
  69  unknown: too few masters could tell
  75  with --quiet: held or split, so no other client can have the lock now`,
		Example: `  redlock status nightly-report
  redlock status --watch nightly-report
  redlock status nightly-report --json | jq -r .verdict
  if redlock status --held nightly-report; then echo 'it runs'; fi`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := OneKey(cmd, args); err != nil {
				return err
			}
			return cmp.Or(exclusive(cmd.Flags()), f.watch.Check(cmd.Flags()))
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object, for machines")
	f.watch.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.held, "held", false, "print nothing; the exit status is 0 if a client\nhas the lock, and 1 if none has")
	cmd.Flags().BoolVar(&f.free, "free", false, "print nothing; the exit status is 0 if the lock\nis free, and 1 if not")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print nothing; the exit status is 0 if the lock\nis free, and 75 if not")
	cmd.Flags().BoolVar(&f.values, "show-value", false, "show the key's values; a client that knows one\ncan release the lock")
	return cmd
}

// exclusive refuses flags of which one asks for output and the other for none, or that ask two
// questions.
func exclusive(set *pflag.FlagSet) error {
	on := func(name string) bool { return set.Changed(name) && set.Lookup(name).Value.String() != "false" }
	for _, silent := range []string{"held", "free", "quiet"} {
		for _, other := range []string{"held", "free", "quiet", "json", "show-value", "watch"} {
			if other != silent && on(silent) && on(other) {
				return cli.Usagef("--%s and --%s exclude each other: --%[1]s prints nothing, and its exit status has one meaning", silent, other)
			}
		}
	}
	return nil
}

func (f *flags) run(cmd *cobra.Command, key string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if f.held || f.free {
		return uncertain(f.test(ctx, key))
	}
	if !f.quiet {
		f.Warn = cli.Warner(cmd.ErrOrStderr())
	}
	locks, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer masterlist.Leave(locks)
	if f.watch.On() {
		return f.repeat(ctx, locks, key, out)
	}
	seen, err := Look(ctx, locks, key)
	if err != nil {
		return err
	}
	switch {
	case f.quiet && (seen.Verdict() == redlock.VerdictHeld || seen.Verdict() == redlock.VerdictSplit):
		err = &cli.ExitError{Code: cli.ExitBusy}
	case f.quiet:
	default:
		err = f.print(out, seen, terminal.For(out))
	}
	return errors.Join(err, conclusive(seen))
}

// repeat looks until ctx ends.
func (f *flags) repeat(ctx context.Context, locks *redlock.Redlock, key string, out io.Writer) error {
	look := func(ctx context.Context, w io.Writer) error {
		seen, err := Look(ctx, locks, key)
		if err != nil {
			return err
		}
		return f.print(w, seen, terminal.For(out))
	}
	if f.json {
		return f.watch.Lines(ctx, out, look)
	}
	return f.watch.Pictures(ctx, out, "redlock status "+key, look)
}

func (f *flags) print(w io.Writer, seen *redlock.Inspection, p terminal.Painter) error {
	if f.json {
		return cli.PrintJSON(w, NewReport(seen, f.values))
	}
	_, err := io.WriteString(w, Inspection{seen}.Show(p, f.values))
	return err
}

func (f *flags) open(ctx context.Context) (*redlock.Redlock, error) {
	return f.Open(ctx, redlock.Config{NodeTimeout: masterlist.NodeTimeout})
}

// test returns nil if what --held or --free says is true, and an error with its own status if it is
// certainly false, or if too few masters could tell.
func (f *flags) test(ctx context.Context, key string) error {
	locks, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer masterlist.Leave(locks)
	seen, err := Look(ctx, locks, key)
	if err != nil {
		return err
	}
	i := Inspection{seen}
	wanted, on := redlock.VerdictHeld, i.most()
	if f.free {
		wanted, on = redlock.VerdictFree, i.Count(Free)
	}
	switch {
	case seen.Verdict() == wanted:
		return nil
	case seen.Verdict() == redlock.VerdictUnknown && on+i.Count(Failed) >= i.Need:
		return conclusive(seen)
	}
	return &cli.ExitError{Code: cli.ExitFailed}
}

// uncertain gives errors without a status of their own, such as an interruption, that of an unknown
// verdict. Otherwise they would have ExitFailed, as a statement that is certainly false.
func uncertain(err error) error {
	var usage *cli.UsageError
	var exit *cli.ExitError
	if err == nil || errors.As(err, &usage) || errors.As(err, &exit) {
		return err
	}
	return &cli.ExitError{Code: cli.ExitNoQuorum, Err: err}
}

// OneKey requires one argument, the key. It does not quote what it refuses: if --nodes was
// forgotten, that is a URL with a password.
func OneKey(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return cli.Usagef("KEY is missing: %s KEY (see %s --help)", cmd.CommandPath(), cmd.CommandPath())
	case len(args) > 1:
		return cli.Usagef("one KEY is wanted, not %d arguments (see %s --help)", len(args), cmd.CommandPath())
	case args[0] == "":
		return cli.Usagef("KEY is empty")
	}
	return nil
}

// Look inspects a lock. Until ctx ends, its only error is a usage error about the key.
func Look(ctx context.Context, locks *redlock.Redlock, key string) (*redlock.Inspection, error) {
	seen, err := locks.Inspect(ctx, key)
	if err != nil && ctx.Err() == nil {
		return nil, &cli.UsageError{Err: err}
	}
	return seen, err
}

// conclusive returns an error if the verdict is unknown or foreign.
func conclusive(seen *redlock.Inspection) error {
	switch i := (Inspection{seen}); seen.Verdict() {
	case redlock.VerdictUnknown:
		return &cli.ExitError{Code: cli.ExitNoQuorum, Err: fmt.Errorf("status %q: %s", plain.Printable(seen.Key), i.Silence())}
	case redlock.VerdictForeign:
		return fmt.Errorf("status %q: the key is not a lock %s", plain.Printable(seen.Key), i.Why())
	}
	return nil
}

// Report is the object of --json. It leaves out values that a master did not report, or that this
// user may not see.
type Report struct {
	Time    time.Time    `json:"time"` // when the masters had answered, by this host's clock
	Key     string       `json:"key"`
	Verdict string       `json:"verdict"`
	Holder  string       `json:"holder,omitempty"` // of the majority
	Owner   string       `json:"owner,omitempty"`  // of the majority: its Config.Owner
	Since   *time.Time   `json:"since,omitempty"`  // of the majority: when it asked for the lock, by its clock
	Quorum  int          `json:"quorum"`           // how many masters must agree
	Nodes   []nodeReport `json:"nodes"`
}

type nodeReport struct {
	Addr    string     `json:"addr"`
	State   string     `json:"state"`
	Holder  string     `json:"holder,omitempty"`
	Owner   string     `json:"owner,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	TTL     *int64     `json:"ttl_ms,omitempty"`  // -1: it does not expire
	Waiting *int       `json:"waiting,omitempty"` // length of the queue
	Fence   *int64     `json:"fence,omitempty"`   // 0: none
	Foreign string     `json:"foreign,omitempty"` // why it does not look like a lock
	Error   string     `json:"error,omitempty"`
	Value   *string    `json:"value,omitempty"`
}

func NewReport(seen *redlock.Inspection, values bool) *Report {
	holder, _ := seen.Holder()
	owner, since := seen.Owner()
	r := &Report{Time: time.Now().UTC(), Key: seen.Key, Verdict: seen.Verdict().String(), Holder: holder, Owner: owner, Since: known(since), Quorum: seen.Need}
	for _, n := range seen.Nodes {
		report := nodeReport{Addr: n.Addr, State: stateOf(n), Holder: n.Holder, Owner: n.Owner, Since: known(n.Since), Foreign: n.Foreign()}
		switch report.State {
		case Failed:
			report.Error = plain.Line(n.Err)
		case Held:
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

// known returns the time in UTC; nil if it is zero.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
