// Command bench compares this library with other locks for Redis, and with the limits of the
// servers and the network. It writes the results as a page:
//
//	go -C bench run .                    the whole comparison, half an hour
//	go -C bench run . -quick             does it run, are the answers right? never: how fast
//	go -C bench run . -only callers      some scenarios, see -only
//	go -C bench run . -page FILE.json    the page again from stored figures
//
// It starts real redis-server processes on the loopback interface, and stops them however it
// ends. In a round, every subject has one turn in every cell, one after the other. The order
// changes from round to round, so that other work of the machine affects all subjects. Only
// figures of the same round are divided by each other.
//
// Before the measurement, it checks that each subject locks, and after each turn that the
// masters are empty. A wrong answer makes the exit status 1; speed never does.
//
// The command is a separate module, so that the libraries in the comparison are not
// requirements of this library.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/bench/child"
	"github.com/quorumlock/redlock/bench/contend"
	"github.com/quorumlock/redlock/bench/idle"
	"github.com/quorumlock/redlock/bench/live"
	"github.com/quorumlock/redlock/bench/report"
	"github.com/quorumlock/redlock/bench/subject"
)

// These flags start this program as a child process: one that holds locks (package live), one
// that contends for a key (package contend), or one that waits (package idle).
const (
	childFlag     = "-hold-locks"
	contenderFlag = "-contend"
	waiterFlag    = "-wait"
)

// options are the values of the command line.
type options struct {
	quick  bool
	only   *regexp.Regexp
	rounds int
	turn   time.Duration
	out    string
	page   string
}

func main() {
	subject.Quiet()
	if is, err := asChild(os.Args); is {
		if err != nil {
			os.Exit(1) // it has reported why to its parent
		}
		return
	}
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2) // flag has printed why
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills this process; the servers end with it even then.
	context.AfterFunc(ctx, stop)
	err = execute(ctx, o)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// asChild runs the child process that the arguments ask for, if any.
func asChild(args []string) (is bool, err error) {
	if len(args) != 3 {
		return false, nil
	}
	plan, in, out := args[2], os.Stdin, os.Stdout
	switch args[1] {
	case childFlag:
		return true, live.Child(plan, in, out)
	case contenderFlag:
		return true, child.Run(plan, in, out, contend.Child)
	case waiterFlag:
		return true, child.Run(plan, in, out, idle.Child)
	}
	return false, nil
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.quick, "quick", false, "check that everything runs and answers rightly; measure nothing of use")
	only := f.String("only", "", "measure the cells whose names match this `regexp`, such as callers, contended, 'faults.*hung', '/c=128/' or live; the progress shows the names")
	f.IntVar(&o.rounds, "rounds", 0, "how often each cell is measured (default 5)")
	f.DurationVar(&o.turn, "turn", 0, "how long each subject is measured in a cell (default 900ms; longer where many want one key)")
	f.StringVar(&o.out, "out", "", "the `folder` for the page (default ../docs; with -quick a temporary one)")
	f.StringVar(&o.page, "page", "", "make the page from this `file` of stored figures and measure nothing")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.only, err = regexp.Compile(*only); err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if err == nil && (o.rounds < 0 || o.turn < 0) {
		err = errors.New("rounds and turn cannot be negative")
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return o, err
	}
	o.setDefaults()
	return o, nil
}

func (o *options) setDefaults() {
	rounds, turn := 5, 900*time.Millisecond
	if o.quick {
		rounds, turn = 1, 40*time.Millisecond
	} else if o.out == "" {
		o.out = filepath.Join("..", "docs")
	}
	if o.rounds == 0 {
		o.rounds = rounds
	}
	if o.turn == 0 {
		o.turn = turn
	}
}

func execute(ctx context.Context, o options) error {
	if o.page != "" {
		run, err := stored(o.page)
		if err != nil {
			return err
		}
		return write(o, run)
	}
	if o.quick && o.out == "" {
		dir, err := os.MkdirTemp("", "redlock-bench-")
		if err != nil {
			return err
		}
		o.out = dir // kept for inspection
	}
	run, err := compare(ctx, o)
	if len(run.Samples)+len(run.Renewals)+len(run.Idles) == 0 || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, report.Summary(os.Stdout, run), write(o, run))
}

// command returns the command that repeats a run, as typed in the root of the repository.
func command() string {
	return strings.Join(append([]string{"go -C bench run ."}, os.Args[1:]...), " ")
}
