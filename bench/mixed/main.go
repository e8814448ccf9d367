// Command mixed measures how one client affects the others that want the same key:
//
//	go -C bench run ./mixed                       everything, half an hour
//	go -C bench run ./mixed -only sick -for 10s   one scenario; see -only
//	go -C bench run ./mixed -for 60s -o FILE.md   the tables into a file as well
//
// It starts redis-server processes on the loopback interface for each scenario:
//
//   - sick: three clients, and a fourth that can never win, because its links are slower
//     than its NodeTimeout, or because it reaches only a minority of the masters;
//   - overload: a Redlock with many waits, while a majority of its masters hangs for some time;
//   - foreign: this library's Acquire beside redsync, node-redlock, and a client that
//     keeps an exact beat; for comparison, the same with a client of this library that
//     polls TryAcquire;
//   - look: a lone waiter notices a release that wakes nobody, with masters down.
//
// Everything runs at the same time in one process, except for node-redlock, which the program
// installs from npm into a temporary folder. Compare only figures of the same table.
//
// The exit status is 1 if something does not run, or if two clients hold a key at the same
// time. It does not depend on the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/bench/subject"
)

// options are the values of the command line.
type options struct {
	only     *regexp.Regexp
	last     time.Duration // how long each figure is measured
	waits    int           // of overload
	freeze   time.Duration // how long overload's majority hangs
	watch    time.Duration // how long overload observes after that, at most
	masters  []int         // of foreign
	replicas int           // of each mix of foreign, each with its own key
	lookFor  time.Duration // how long look's waiters have waited at the first release
	looks    int           // waiters of look
	out      io.Writer
}

// scenario is a part that -only can name.
type scenario struct {
	name string
	run  func(context.Context, options) error
}

var scenarios = []scenario{
	{"sick", sick}, {"overload", overload}, {"foreign", foreign}, {"look", look},
}

func main() {
	subject.Quiet()
	o, file, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mixed:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal kills this process; the servers end with it even then.
	context.AfterFunc(ctx, stop)
	if err := toFile(ctx, o, file); err != nil {
		fmt.Fprintln(os.Stderr, "mixed:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (o options, file string, err error) {
	f := flag.NewFlagSet("mixed", flag.ContinueOnError)
	f.SetOutput(stderr)
	only := f.String("only", "", "run the scenarios and rows whose names match this `regexp`: sick, overload, foreign, look, or foreign/node; the progress shows the names")
	f.DurationVar(&o.last, "for", 30*time.Second, "how long each figure is measured")
	f.IntVar(&o.waits, "waits", 10_000, "how many waits overload has")
	f.DurationVar(&o.freeze, "freeze", 12*time.Second, "how long overload's majority hangs")
	f.DurationVar(&o.watch, "watch", time.Minute, "how long overload looks on after that, at most")
	sizes := f.String("masters", "3,5", "the `numbers` of masters of foreign")
	f.IntVar(&o.replicas, "replicas", 6, "how often each mix of foreign runs at the same time, each with a key of its own")
	f.DurationVar(&o.lookFor, "look", 45*time.Second, "how long look's waiters have waited at the first release")
	f.IntVar(&o.looks, "looks", 30, "how many waiters look has")
	f.StringVar(&file, "o", "", "the `file` for the tables, besides the standard output")
	if err := f.Parse(args); err != nil {
		return o, "", err
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, "", fmt.Errorf("-masters: %q is no number of masters", text)
		}
		o.masters = append(o.masters, n)
	}
	switch {
	case f.NArg() > 0:
		return o, "", fmt.Errorf("unexpected argument %q", f.Arg(0))
	case min(o.last, o.freeze, o.watch, o.lookFor) <= 0 || min(o.waits, o.replicas, o.looks) < 1:
		return o, "", errors.New("durations and numbers must be positive")
	}
	o.only, err = regexp.Compile(*only)
	return o, file, err
}

// toFile runs the scenarios and writes the tables to the standard output and to the file, if
// there is one.
func toFile(ctx context.Context, o options, file string) (err error) {
	o.out = os.Stdout
	if file != "" {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.out = io.MultiWriter(os.Stdout, f)
	}
	return measure(ctx, o)
}

// measure runs what -only matches. If a scenario fails, the others still run.
func measure(ctx context.Context, o options) error {
	var errs []error
	for _, s := range scenarios {
		if !o.wants(s.name) {
			continue
		}
		if err := s.run(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// wants reports whether -only matches a scenario, or one of its rows.
func (o options) wants(name string) bool {
	of, _, row := strings.Cut(name, "/")
	if row {
		return o.only.MatchString(name)
	}
	return slices.ContainsFunc(rows(of), o.only.MatchString)
}

// rows returns the names of a scenario's rows.
func rows(of string) (names []string) {
	switch of {
	case "sick":
		for _, c := range sickCases {
			names = append(names, of+"/"+c.name)
		}
	case "foreign":
		for _, m := range mixes {
			names = append(names, of+"/"+m.name)
		}
	default:
		names = []string{of}
	}
	return names
}

// table prints rows in Markdown, under a heading.
type table struct {
	out  io.Writer
	head []string
}

func newTable(out io.Writer, heading, text string, head ...string) *table {
	fmt.Fprintf(out, "### %s\n\n%s\n\n", heading, text)
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	return &table{out, head}
}

func (t *table) row(cells ...any) {
	var text []string
	for _, c := range cells {
		text = append(text, cell(c))
	}
	fmt.Fprintf(t.out, "| %s |\n", strings.Join(text, " | "))
}

func (t *table) end() { fmt.Fprintln(t.out) }

// cell formats a figure with its significant digits.
func cell(c any) string {
	switch c := c.(type) {
	case time.Duration:
		switch {
		case c < 10*time.Millisecond:
			return fmt.Sprintf("%.1f ms", c.Seconds()*1e3)
		case c < time.Second:
			return fmt.Sprintf("%.0f ms", c.Seconds()*1e3)
		}
		return fmt.Sprintf("%.1f s", c.Seconds())
	case float64:
		if c < 10 {
			return fmt.Sprintf("%.2f", c)
		}
		return fmt.Sprintf("%.0f", c)
	}
	return fmt.Sprint(c)
}

// progress prints what is being measured.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}
