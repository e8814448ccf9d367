// Package nodes shows whether masters are fit to carry locks.
package nodes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/quorumlock/redlock/cmd/redlock/internal/watch"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/redlock"
)

// probe is the key that the masters inspect for a Redlock. Nobody locks it.
const probe = "redlock-nodes"

type flags struct {
	masterlist.Flags
	guard, ttl, timeout cli.Duration
	json                bool
	watch               watch.Flag
}

// Command returns the subcommand nodes.
func Command() *cobra.Command {
	flags := flags{timeout: cli.Duration(masterlist.NodeTimeout)}
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show whether the masters are fit to carry locks",
		Long: `nodes asks all masters at once, and shows their identity, round-trip time, clock
and settings. It warns of anything that could lose a lock. A ? stands for a
value that the user may not ask for, or that the server does not report.

The state of a master is ok if it can vote, and otherwise the reason why it
cannot; a sentence below the tables says what to do. ping is the median of a few
round trips. clock is how far the master's clock is ahead of this host's, and
how wrong that may be.

nodes writes nothing, except with --restart-guard. With it, nodes looks at the
masters as a client with this guard does: it writes the guard's identity record
to a master where the record is missing or names another server.

--watch looks again and again, until ^C. On a terminal it shows the same text in
place; elsewhere it prints one text after the other, or with --json one object a
line. It goes on while clients cannot get locks. It then exits with 0.

The exit status is 0 if clients can get locks, in spite of any warnings: a
majority of the masters can vote, and none is listed twice. It is 69 if they
cannot, and 64 if the command line is wrong.`,
		Example: `  redlock nodes --nodes redis://10.0.0.1,redis://10.0.0.2,redis://10.0.0.3
  redlock nodes --restart-guard 30s
  redlock nodes --watch=10s
  redlock nodes --json | jq -r '.warnings[] | "\(.code) \(.node)"'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return cmp.Or(cli.NoArguments(cmd, args), flags.watch.Check(cmd.Flags()))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags.Warn = cli.Warner(cmd.ErrOrStderr())
			return flags.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags.Register(cmd.Flags())
	cmd.Flags().Var(&flags.guard, "restart-guard", "the guard of all clients, the longest ttl in\nuse: show whose votes do not count because of\nit (default off)")
	cmd.Flags().Var(&flags.timeout, "timeout", "how long to wait for an answer")
	cmd.Flags().Var(&flags.ttl, "ttl", "the longest ttl in use: where masters fail\nover, the guard must exceed it (default the\nguard)")
	cmd.Flags().Lookup("restart-guard").DefValue = ""
	cmd.Flags().Lookup("ttl").DefValue = ""
	cmd.Flags().BoolVar(&flags.json, "json", false, "print one JSON object, for machines")
	flags.watch.Register(cmd.Flags())
	return cmd
}

func (f *flags) run(ctx context.Context, out io.Writer) error {
	guard, patience := time.Duration(f.guard), time.Duration(f.timeout)
	if patience <= 0 {
		return cli.Usagef("--timeout %v is not above 0", patience)
	}
	if least := 10 * time.Millisecond; guard != 0 && guard < least {
		return cli.Usagef("--restart-guard %v is below the shortest ttl, %v", guard, least)
	}
	if f.ttl < 0 {
		return cli.Usagef("--ttl %v is negative", time.Duration(f.ttl))
	}
	r, err := f.Open(ctx, redlock.Config{RestartGuard: guard, NodeTimeout: patience})
	if err != nil {
		return err
	}
	defer masterlist.Leave(r)
	clients, err := f.Clients(ctx, patience)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	look := func(ctx context.Context, w io.Writer) (*health, error) {
		masters, err := survey(ctx, r, clients, f.Prefix, patience)
		if err != nil {
			return nil, err
		}
		h := newHealth(masters, guard, time.Duration(f.ttl))
		if f.json {
			return h, h.encode(w)
		}
		return h, h.print(w, terminal.For(out))
	}
	if f.watch.On() {
		return f.repeat(ctx, out, look)
	}
	h, err := look(ctx, out)
	if err != nil {
		return err
	}
	return h.verdict()
}

// repeat looks until ctx ends. Below the text it says why clients cannot get locks, as the error of a
// single look does.
func (f *flags) repeat(ctx context.Context, out io.Writer, look func(context.Context, io.Writer) (*health, error)) error {
	if f.json {
		return f.watch.Lines(ctx, out, func(ctx context.Context, w io.Writer) error {
			_, err := look(ctx, w)
			return err
		})
	}
	return f.watch.Pictures(ctx, out, "redlock nodes", func(ctx context.Context, w io.Writer) error {
		h, err := look(ctx, w)
		if err != nil {
			return err
		}
		if err = h.verdict(); err != nil {
			_, err = fmt.Fprintf(w, "\n%s\n", terminal.Indent+terminal.For(out).Paint(terminal.Red, terminal.Capital(err.Error())+"."))
		}
		return err
	})
}

// survey asks each master by itself and, at the same time, all of them through a Redlock.
func survey(ctx context.Context, r *redlock.Redlock, clients []*redis.Client, prefix string, patience time.Duration) ([]*master, error) {
	masters := make([]*master, len(clients))
	var known *redlock.Inspection
	var g errgroup.Group
	for i, client := range clients {
		g.Go(func() error {
			masters[i] = newMaster(client.Options().Addr, ask(ctx, client, prefix, patience), patience)
			return nil
		})
	}
	g.Go(func() (err error) {
		known, err = r.Inspect(ctx, probe)
		return err
	})
	if err := cmp.Or(g.Wait(), context.Cause(ctx)); err != nil {
		return nil, err
	}
	now := time.Now()
	for i, node := range r.Nodes() {
		masters[i].seen(known.Nodes[i].Err, node, now)
	}
	return masters, nil
}
