package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/leash"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/redlock"
)

// run runs the command under the lock, or in every term of an election. It releases the lock
// whatever happens, even if ctx has ended.
func (f *flags) run(ctx context.Context, key string, argv []string, stderr io.Writer) (err error) {
	p := newPrinter(stderr, key, f.output)
	defer p.close()
	defer func() { err = p.fail(err) }()
	f.Warn = p.exposed
	path, err := find(argv[0])
	if err != nil {
		return err
	}
	// Signals that our parent made us ignore stay ignored, for us and for the command: under nohup,
	// and in the background of a script.
	leash.Inherit()
	signals := make(chan os.Signal, 8)
	notify(signals, heeded(append(leash.Endings(), leash.Messages()...)))
	defer signal.Stop(signals)
	// If nobody reads stderr any more, that must not end us, neither while we hold the lock nor
	// with another status. We do not ignore SIGPIPE, because the command would then ignore it too.
	notify(make(chan os.Signal, 1), heeded([]os.Signal{syscall.SIGPIPE}))

	locks, err := f.openUnless(ctx, signals, f.config(p))
	if err != nil {
		return err
	}
	once := func(say func(leash.Event)) error {
		lock, err := f.acquire(context.WithoutCancel(ctx), locks, key, signals, p)
		if err != nil {
			return err
		}
		return f.hold(lock, leash.Command{
			Path: path, Args: argv, Env: under(lock, f.environ(os.Environ())),
			Grace: time.Duration(f.grace), Margin: f.margin(),
		}, signals, p, say)
	}
	if f.standby {
		err = lead(once, p)
	} else {
		err = once(p.event)
	}
	if !errors.Is(err, errAtOnce) {
		masterlist.Leave(locks)
	}
	return err
}

// heeded returns the signals that are not ignored.
func heeded(signals []os.Signal) []os.Signal { return slices.DeleteFunc(signals, signal.Ignored) }

// notify is signal.Notify, except that no signals means none, not all.
func notify(c chan<- os.Signal, signals []os.Signal) {
	if len(signals) > 0 {
		signal.Notify(c, signals...)
	}
}

// openUnless is Open, but it ends at a signal that asks us to end. The file that lists the masters
// may block: nobody may write to it, or its server may hang.
func (f *flags) openUnless(ctx context.Context, signals <-chan os.Signal, cfg redlock.Config) (*redlock.Redlock, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		locks *redlock.Redlock
		err   error
	}
	opened := make(chan result, 1)
	go func() {
		locks, err := f.Open(ctx, cfg)
		opened <- result{locks, err}
	}()
	for {
		select {
		case r := <-opened:
			return r.locks, r.err
		case s := <-signals:
			if slices.Contains(leash.Messages(), s) {
				continue // it is for a command that does not run yet
			}
			cancel(interrupted(s))
			if r := <-opened; r.locks != nil {
				masterlist.Leave(r.locks)
			}
			return nil, interrupted(s)
		}
	}
}

// find returns the path of a command. run calls it before it asks any master for a lock.
func find(name string) (path string, err error) {
	path, err = exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, exec.ErrNotFound) && onPath(name):
		return "", &cli.ExitError{Code: cli.ExitCannotExecute, Err: fmt.Errorf("%s: cannot execute: %w", name, fs.ErrPermission)}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("%s: command not found", name)}
	}
	return "", &cli.ExitError{Code: cli.ExitCannotExecute, Err: fmt.Errorf("%s: cannot execute: %w", name, reason(err))}
}

// onPath reports whether PATH has a file of that name, executable or not.
func onPath(name string) bool {
	return !strings.ContainsRune(name, filepath.Separator) &&
		slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(folder string) bool {
			info, err := os.Stat(filepath.Join(folder, name))
			return err == nil && !info.IsDir()
		})
}

// reason returns err without the operation and the file that it names.
func reason(err error) error {
	var exec *exec.Error
	if errors.As(err, &exec) {
		err = exec.Err
	}
	return plain.Reason(err)
}

// hold keeps the lock alive while the command runs, and then gives it up. It calls say with each
// event of the command.
func (f *flags) hold(lock *redlock.Lock, cmd leash.Command, signals <-chan os.Signal, p *printer, say func(leash.Event)) error {
	acquired := time.Now()
	lock.KeepAlive()
	p.flush() // a line written later could stop us in the background
	outcome, err := leash.Run(cmd, lock, signals, say)
	until := lock.Until()
	after := time.Duration(0)
	if err == nil && outcome.Lost == nil && (outcome.Status == 0 || f.keep) {
		after = time.Duration(f.atLeast) - time.Since(acquired)
	}
	released := giveUp(lock, after)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return err
	case errors.Is(err, fs.ErrNotExist) && missing(cmd.Path): // else its #! names a missing file
		return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("%s: command not found", cmd.Args[0])}
	case err != nil:
		return &cli.ExitError{Code: cli.ExitCannotExecute, Err: fmt.Errorf("%s: cannot execute: %w", cmd.Args[0], reason(err))}
	}
	lost := outcome.Lost
	if lost == nil && (errors.Is(released, redlock.ErrNotHeld) || errors.Is(released, redlock.ErrExpired)) {
		lost = released
	}
	if lost != nil {
		return &cli.ExitError{Code: cli.ExitLost, Err: &lostError{lock.Key(), lost, until}}
	}
	if released != nil {
		p.warn(eventNotReleased, "not released everywhere, keys may live until their ttl: "+plain.Line(released), slog.Any("error", released))
	} else if after > 0 {
		p.tell(eventLeftTaken, fmt.Sprintf("left %s taken for another %v", lock.Key(), after.Round(time.Millisecond)), slog.Duration("left", after))
	} else {
		p.tell(eventReleased, "released "+lock.Key())
	}
	if outcome.Status != 0 {
		return &cli.ExitError{Code: outcome.Status}
	}
	return nil
}

// lostError is the error of a lock that was lost while the command ran.
type lostError struct {
	key   string
	cause error
	until time.Time // the end of validity
}

func (e *lostError) Error() string {
	return fmt.Sprintf("lock %q was lost: %s (validity ended %s)", e.key, plain.Line(e.cause), exactly(e.until))
}

// giveUp releases the lock, and leaves the key taken for d if that is positive.
func giveUp(lock *redlock.Lock, d time.Duration) error {
	err := lock.ReleaseAfter(context.Background(), d)
	if err != nil && lock.Valid() { // d is out of range, and nothing was done
		err = errors.Join(err, lock.Release(context.Background()))
	}
	return err
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}

// exactly formats a time to the microsecond, so that it can be compared with others.
func exactly(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// interrupted returns the error of a wait that a signal ended.
func interrupted(s os.Signal) error {
	number, _ := s.(syscall.Signal)
	return &cli.ExitError{Code: cli.ExitSignal + int(number), Err: fmt.Errorf("%v before there was a lock", s)}
}
