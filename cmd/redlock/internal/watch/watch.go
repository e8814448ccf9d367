// Package watch looks at the masters again and again, for the subcommands that show them.
package watch

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/internal/terminal"
)

const (
	usual = "2s"
	// least keeps a mistake, such as --watch=1ms, from being a load for the masters.
	least = 100 * time.Millisecond
)

// Flag is --watch: how often to look. It is zero, for a single look, if the flag was not given.
type Flag struct{ every cli.Duration }

// Register adds the flag to those of a command.
func (f *Flag) Register(set *pflag.FlagSet) {
	set.Var(&f.every, "watch", "look again every 2s, or as often as --watch=1m\nsays, until ^C; with --json one object a line")
	set.Lookup("watch").NoOptDefVal, set.Lookup("watch").DefValue = usual, ""
}

// Check refuses an interval that is too short.
func (f *Flag) Check(set *pflag.FlagSet) error {
	if set.Changed("watch") && time.Duration(f.every) < least {
		return cli.Usagef("--watch %v is below %v", time.Duration(f.every), least)
	}
	return nil
}

// On reports whether to look more than once.
func (f *Flag) On() bool { return f.every > 0 }

// A Look asks the masters once, and writes what it has found.
type Look func(ctx context.Context, w io.Writer) error

// Lines looks again and again. It returns nil when ctx ends, and the error of a look at once.
func (f *Flag) Lines(ctx context.Context, out io.Writer, look Look) error {
	return f.repeat(ctx, look, nil, func(text string) error {
		_, err := io.WriteString(out, text)
		return err
	})
}

// Pictures looks again and again, as Lines does, and puts a heading above the text of each look. On
// a terminal each text takes the place of the one before, and the last one stays. Elsewhere they
// follow each other, with an empty line in between.
func (f *Flag) Pictures(ctx context.Context, out io.Writer, what string, look Look) error {
	headed := func(ctx context.Context, w io.Writer) error {
		_, _ = fmt.Fprintf(w, "Every %v: %s, at %s\n\n", time.Duration(f.every), plain.Printable(what), time.Now().UTC().Format(time.RFC3339))
		return look(ctx, w)
	}
	screen := terminal.ScreenOf(out)
	if screen == nil {
		between := ""
		return f.repeat(ctx, headed, nil, func(text string) error {
			_, err := io.WriteString(out, between+text)
			between = "\n"
			return err
		})
	}
	defer func() { _ = screen.Close() }()
	return f.repeat(ctx, headed, screen, screen.Draw)
}

// repeat shows one look after the other. It draws the screen, if there is one, again when its size
// changes.
func (f *Flag) repeat(ctx context.Context, look Look, screen *terminal.Screen, show func(string) error) error {
	var resized <-chan os.Signal
	if screen != nil {
		var stop func()
		resized, stop = terminal.Resized()
		defer stop()
	}
	tick := time.NewTicker(time.Duration(f.every))
	defer tick.Stop()
	for {
		var text strings.Builder
		err := look(ctx, &text)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = show(text.String())
		}
		for due := false; err == nil && !due; {
			select {
			case <-tick.C:
				due = true
			case <-resized:
				err = screen.Redraw()
			case <-ctx.Done():
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}
