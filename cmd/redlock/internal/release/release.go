// Package release releases the lock of a handle, or breaks the lock of a holder that is dead.
package release

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorumlock/redlock/cmd/redlock/internal/handlefile"
	"github.com/quorumlock/redlock/cmd/redlock/internal/status"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/redlock"
)

type flags struct {
	handlefile.Flags
	force, yes, foreign, json bool
}

// Command returns the subcommand release.
func Command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "release {--handle-file FILE | --force KEY} [flags]",
		Short: "Release the lock of a handle, or break a dead holder's",
		Long: `release --handle-file releases the lock whose handle redlock acquire has written
to the file, or that stdin has. It then removes the file. It also removes it if
the lock is not held any more.

release --force deletes a lock that another client holds, and wakes the next
client in the queue. Use it if the holder died or hangs, and its lock would last
for long. A holder that is alive releases its lock by itself.

It shows the lock and asks for confirmation. It then deletes the lock on every
master that still has the value that was shown. If another client got the lock
meanwhile, that client's lock is not touched.

A key whose value is not a UUID, or that never expires, does not look like a
lock. It may be data that happen to have this name, so it stays, unless you give
--foreign. A key of another type than string stays in any case.

A holder that is alive and has renewed the lock gets a message at once. Any
other holder finds out when it next renews the lock, after a third of its ttl;
if it does not renew, it finds out only when it releases the lock. Until then it
works beside the next holder, and only fencing tokens can stop its writes. So
first make sure that it is dead.

Exit status:
   0  released; with --force: broken, or there was nothing to break
   1  not broken: the question was not answered with yes, or the key does not
      look like a lock
  64  the command line is wrong, or the file has no handle; no master was asked
  69  too few masters answered. With a handle: try again, or the lock ends with
      its ttl. With --force, before the question: nothing was deleted. After
      it: the deletions are shown, and other masters may still have the lock
  76  with a handle: the lock was not held any more, as it was released before,
      or has expired; perhaps another client has it`,
		Example: `  redlock release --handle-file deploy.lock
  redlock release --force nightly-report
  redlock release --force --yes nightly-report --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("handle-file") {
				return f.checkHandle(cmd, args)
			}
			if err := status.OneKey(cmd, args); err != nil {
				return err
			}
			return f.check()
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			f.Warn = cli.Warner(cmd.ErrOrStderr())
			if cmd.Flags().Changed("handle-file") {
				return f.byHandle(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
			}
			locks, err := f.Open(cmd.Context(), redlock.Config{NodeTimeout: masterlist.NodeTimeout})
			if err != nil {
				return err
			}
			defer masterlist.Leave(locks)
			return f.run(cmd, locks, args[0])
		},
	}
	f.Register(cmd.Flags())
	cmd.Flags().BoolVar(&f.force, "force", false, "required with KEY: the lock is somebody else's")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask, for where nobody can answer")
	cmd.Flags().BoolVar(&f.foreign, "foreign", false, "delete also what does not look like a lock")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object, for machines; with\n--force it needs --yes")
	return cmd
}

// checkHandle refuses what belongs to --force.
func (f *flags) checkHandle(cmd *cobra.Command, args []string) error {
	if f.force || f.yes || f.foreign {
		return cli.Usagef("--handle-file is for a lock of one's own: --force, --yes and --foreign do not go with it")
	}
	if len(args) > 0 {
		return cli.Usagef("the handle says which KEY: redlock release --handle-file FILE")
	}
	return nil
}

func (f *flags) check() error {
	switch {
	case f.Guard != 0:
		return cli.Usagef("--restart-guard goes with --handle-file: --force asks every master, whether or not it may vote")
	case !f.force:
		return cli.Usagef("release of a KEY breaks a lock that somebody else holds, for when its holder is dead: it needs --force. For a lock of your own, give its --handle-file (see redlock release --help)")
	case f.json && !f.yes:
		return cli.Usagef("--json asks nobody: it needs --yes")
	case !f.yes && !terminal.Is(os.Stdin):
		return cli.Usagef("stdin is no terminal, so nobody can be asked: give --yes")
	}
	return nil
}

// report is the object of --json.
type report struct {
	Before  *status.Report `json:"before"`
	Deleted []string       `json:"deleted"`         // the masters on which the lock was deleted
	After   *status.Report `json:"after,omitempty"` // only if there was something to delete
}

// run shows the lock, asks for confirmation, breaks the lock and shows the result.
func (f *flags) run(cmd *cobra.Command, locks *redlock.Redlock, key string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	seen, err := status.Look(ctx, locks, key)
	if err != nil {
		return err
	}
	before := status.Inspection{Inspection: seen}
	report := report{Before: status.NewReport(seen, false), Deleted: []string{}}
	if !f.json {
		if _, err := io.WriteString(out, before.Show(terminal.For(out), false)); err != nil {
			return err
		}
	}
	if something, err := breakable(before, f.foreign); err != nil || !something {
		return errors.Join(f.print(out, report, "\nThere is nothing to break.\n", err), err)
	}
	if !f.yes {
		if err := confirm(ctx, os.Stdin, cmd.ErrOrStderr(), before); err != nil {
			return err
		}
	}
	release := locks.ForceRelease
	if f.foreign {
		release = locks.ForceReleaseForeign
	}
	deleted, failed := release(ctx, seen)
	if quorum := (*redlock.QuorumError)(nil); errors.As(failed, &quorum) {
		failed = &cli.ExitError{Code: cli.ExitNoQuorum, Err: failed}
	}
	report.Deleted = append(report.Deleted, deleted...)
	if seen, err = locks.Inspect(ctx, key); err != nil {
		return cmp.Or(failed, err)
	}
	report.After = status.NewReport(seen, false)
	return errors.Join(f.print(out, report, aftermath(before, deleted, status.Inspection{Inspection: seen}), nil), failed)
}

// print writes JSON for machines. It writes text for people, unless there is an error to read.
func (f *flags) print(out io.Writer, report report, text string, failed error) (err error) {
	switch {
	case f.json:
		err = cli.PrintJSON(out, report)
	case failed == nil:
		_, err = io.WriteString(out, text)
	}
	return err
}

// breakable reports whether there is a lock to break or, with foreign, any string. It returns an
// error if that must not be deleted.
func breakable(i status.Inspection, foreign bool) (bool, error) {
	answered, held, locks := len(i.Nodes)-i.Count(status.Failed), i.Count(status.Held), lockLike(i)
	switch verdict := i.Verdict(); {
	case verdict == redlock.VerdictUnknown && (held == 0 || answered < i.Need):
		return false, &cli.ExitError{Code: cli.ExitNoQuorum, Err: fmt.Errorf("release %q: %s; nothing was deleted", plain.Printable(i.Key), i.Silence())}
	case held == 0 && verdict != redlock.VerdictFree:
		return false, fmt.Errorf("release %q: the key is not a lock %s; nothing was deleted", plain.Printable(i.Key), i.Why())
	case held > 0 && locks == 0 && !foreign:
		return false, fmt.Errorf("release %q: the key does not look like a lock %s; nothing was deleted (--foreign deletes it all the same)", plain.Printable(i.Key), i.Why())
	}
	return held > 0, nil
}

// lockLike returns the number of masters whose value looks like a lock.
func lockLike(i status.Inspection) (n int) {
	for _, node := range i.Nodes {
		if node.Holder != "" && node.Foreign() == "" {
			n++
		}
	}
	return n
}

// confirm asks whether to break the lock, and accepts no answer but yes. If ctx ends, it returns at
// once and does not wait for the end of a line.
func confirm(ctx context.Context, in io.Reader, prompt io.Writer, i status.Inspection) error {
	question := "Is its holder dead? Type yes to break this lock: "
	if owner, _ := i.Owner(); owner != "" {
		question = fmt.Sprintf("Is its holder, %s, dead? Type yes to break this lock: ", owner)
	}
	if lockLike(i) == 0 {
		question = "It does not look like a lock. Type yes to delete it: "
	}
	if _, err := fmt.Fprint(prompt, "\n"+question); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch {
		case strings.EqualFold(strings.TrimSpace(line), "yes"):
			return nil
		case !strings.HasSuffix(line, "\n"):
			_, _ = fmt.Fprintln(prompt) // the terminal has not ended the line
		}
	case <-ctx.Done():
		_, _ = fmt.Fprintln(prompt)
	}
	return fmt.Errorf("release %q: not broken, the answer was not yes (--yes does not ask)", plain.Printable(i.Key))
}

// aftermath describes what was deleted, and what the user should check now.
func aftermath(before status.Inspection, deleted []string, after status.Inspection) string {
	var b strings.Builder
	b.WriteString("\n")
	say := func(format string, args ...any) { b.WriteString(terminal.Wrap(fmt.Sprintf(format, args...), "")) }
	if len(deleted) == 0 {
		say("Nothing was deleted: since it was shown it has ended by itself, or changed hands.")
	} else {
		say("Deleted on %d of %d masters: %s.", len(deleted), len(before.Nodes), strings.Join(deleted, ", "))
	}
	if n := after.Count(status.Failed); n > 0 {
		say("%d of %d masters cannot tell: what they still have goes when it expires.", n, len(after.Nodes))
	}
	say("Now %s: %s", after.Verdict(), after.Sentence())
	if len(deleted) == 0 {
		return b.String()
	}
	b.WriteString("\nCheck now:\n")
	for _, check := range []string{
		"That the holder is dead, which redlock run --verbose logs as " + owners(before) + ". If it lives and has renewed the lock it has just been told; otherwise it works on until it next renews, after a third of its ttl.",
		"What it was doing. It may have died half way, and what it has sent may yet arrive; only where fencing tokens are checked it is then refused.",
		"Who has the lock now: redlock status.",
	} {
		b.WriteString(terminal.Indent + "- " + terminal.Hang(check, len(terminal.Indent)+2, terminal.Columns-len(terminal.Indent)-2) + "\n")
	}
	return b.String()
}

// owners returns all holders of a part of the lock.
func owners(i status.Inspection) string {
	var all []string
	for _, n := range i.Nodes {
		if n.Holder != "" && !slices.Contains(all, n.Holder) {
			all = append(all, n.Holder)
		}
	}
	return strings.Join(all, ", ")
}
