//go:build unix

package leash

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Endings returns the signals that ask a program to end.
func Endings() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
}

// Messages returns signals that inform a program and do not ask it to end. Run passes them on,
// too.
func Messages() []os.Signal {
	return []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}
}

// Run starts the command with our stdin, stdout and stderr in a process group of its own. It
// returns when the command, and all processes that it has left behind, have ended.
//
// Run sends each signal from the channel to the command and the processes that it has started. A
// SIGTSTP to us stops first the command and then us. When we are continued, the command goes on
// if the lease still lasts, and is killed if not. Run lends the terminal to the command when the
// command asks for it.
//
// The command gets SIGTERM and SIGKILL as the comments of Command say. If the lease is lost
// before its end, the command is killed at once, as another client may already have the lease.
// If we are killed, a second process, the watchdog, kills the command's group; on Linux the
// kernel also kills the command itself. If we are stopped, the watchdog kills the command in
// time.
//
// Run calls say with each event, on the caller's goroutine; say must not block. An error means
// that the command was not started. It was not started either if the outcome is a loss and say
// was not called. After Run, SIGTTOU is ignored.
//
// One Run may follow another, and its command gets the same as the first one's. Two at a time would
// take each other's children.
func Run(cmd Command, lease Lease, signals <-chan os.Signal, say func(Event)) (Outcome, error) {
	r := run{
		lease: lease, say: say, patience: cmd.Grace,
		reins: reins{grace: cmd.Grace, margin: cmd.Margin},
	}
	if act, _ := r.due(time.Now(), lease.Until(), lease.Context().Err() != nil); act != wait {
		r.lose()
		return r.outcome, nil
	}

	children := make(chan os.Signal, 1) // one is enough: reap looks at all children
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	r.typed = make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(r.typed, syscall.SIGTSTP)
		defer signal.Stop(r.typed)
	}
	over := make(chan struct{})
	defer close(over)
	if ignoresTTOU {
		// The command would inherit that. It does not inherit a handler.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
	}
	err := r.start(cmd, over)
	// We kill the command, so we must not be stopped when we write a line while we are in the
	// background. We ignore SIGTTOU only now, as the command would inherit that.
	ignoresTTOU = ignoresTTOU || !signal.Ignored(syscall.SIGTTOU)
	signal.Ignore(syscall.SIGTTOU)
	if err != nil {
		return Outcome{}, err
	}
	defer r.close()
	r.guardAt = time.Now().Add(guardAfter)
	say(Event{What: Started, PID: r.id, Until: lease.Until()})

	lost := lease.Context().Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, over := r.step()
		if over {
			return r.outcome, nil
		}
		timer.Reset(next)
		select {
		case <-children:
		case <-timer.C:
		case <-r.typed:
			r.suspend(syscall.SIGTSTP)
		case <-lost:
			lost = nil
		case s := <-signals:
			r.pass(s.(syscall.Signal))
		}
	}
}

// ignoresTTOU reports that an earlier Run has made us ignore SIGTTOU, and not our parent.
var ignoresTTOU bool

// run is a command that runs, or the processes that it has left behind.
type run struct {
	group
	reins
	lease    Lease
	say      func(Event)
	patience time.Duration  // how long processes that the command left behind have after SIGTERM
	typed    chan os.Signal // gets SIGTSTP

	guardAt   time.Time // when to start the watchdog; zero after that
	suspended bool      // the command is stopped
	held      bool      // we have stopped the command, and continue it only if the lease lasts
	ended     time.Time // when the command itself ended; zero while it runs
	asked     time.Time // when the processes that the command left behind got SIGTERM; zero before that
	killed    time.Time // when SIGKILL was first sent; zero before that
	outcome   Outcome
}

const (
	// linger is how long processes that a command left behind may take to end by themselves.
	// A shell does not wait for all of its children, such as one that still reads its output.
	linger = 500 * time.Millisecond
	// tick is the pause between two checks of the processes that a command left behind, and of
	// a lease that was about to end when we were continued.
	tick = 10 * time.Millisecond
	// lastWait is how long we wait for processes that were killed when the lease was lost. A
	// process that takes longer to end hangs in the kernel, or runs as another user.
	lastWait = time.Second
	// forever is a wait that ends only when something happens.
	forever = time.Hour
)

// step does everything that is due. It returns the time after which to call it again. over
// reports that no process of the command is left to wait for.
func (r *run) step() (next time.Duration, over bool) {
	for {
		status, changed := r.reap()
		switch {
		case !changed && r.ended.IsZero():
			return min(r.hold(), r.watch()), false
		case !changed && r.gone():
			return 0, true
		case !changed:
			return min(r.hold(), tick), r.leftBehind()
		case status.Stopped():
			r.stopped(status.StopSignal())
		default:
			r.end(status)
		}
	}
}

// end records that the command has ended, and whether it had its lease until now.
func (r *run) end(status syscall.WaitStatus) {
	r.ended = time.Now()
	r.outcome.Status = status.ExitStatus()
	event := Event{What: Ended}
	if status.Signaled() {
		event.Signal = status.Signal()
		r.outcome.Status = 128 + int(status.Signal())
	}
	act, _ := r.due(r.ended, r.lease.Until(), r.lease.Context().Err() != nil)
	switch {
	case r.lease.Context().Err() != nil, !r.ended.Before(r.lease.Until()):
		r.lose()
	case event.Signal == syscall.SIGKILL && (act == kill || r.watchdog.fired(r.ended)): // by the watchdog
		r.lose()
	}
	r.takeBack(!r.killed.IsZero())
	event.Status = r.outcome.Status
	r.say(event)
}

// lose records why the lease was lost. Only the first call counts.
func (r *run) lose() {
	switch cause := context.Cause(r.lease.Context()); {
	case r.outcome.Lost != nil:
	case cause != nil:
		r.outcome.Lost = cause
	default:
		r.outcome.Lost = ErrRunningOut
	}
}

// hold asks the command to end, kills it or lets it go on, as the lease demands. It returns the
// time until there is more to do.
func (r *run) hold() time.Duration {
	if !r.killed.IsZero() {
		return forever
	}
	until := r.lease.Until()
	act, next := r.due(time.Now(), until, r.lease.Context().Err() != nil)
	switch {
	case act == kill:
		r.lose()
		r.slay()
		r.say(Event{What: Killed, Signal: syscall.SIGKILL, Until: until})
		return forever
	case r.held && act == ask:
		return tick // the lease could not be renewed while we were stopped, and now has a chance
	case r.held:
		r.resume()
	case act == ask:
		r.reins.asked(until)
		r.lose()
		r.ask()
		r.say(Event{What: Ending, Signal: syscall.SIGTERM, Until: until})
		return tick
	}
	r.warn()
	// Come back often enough to send the watchdog the new time after a renewal, long before the
	// old one.
	return min(time.Until(next), time.Until(until)/2)
}

// warn sends the watchdog the time at which to kill the command if we are stopped. It is later
// than the time at which we would kill the command ourselves.
func (r *run) warn() {
	killAt := r.reins.killAt
	if killAt.IsZero() {
		killAt = r.lease.Until().Add(-r.margin)
	}
	r.watchdog.order(killAt.Add(r.margin / 2))
}

// watch starts the watchdog and raises our priority when it is time. It returns the time left
// until then.
func (r *run) watch() time.Duration {
	if r.guardAt.IsZero() {
		return forever
	}
	if left := time.Until(r.guardAt); left > 0 {
		return left
	}
	r.guardAt = time.Time{}
	if hurry() {
		r.say(Event{What: Hurried})
	}
	if err := r.guard(); err != nil {
		r.say(Event{What: Unguarded, Err: err})
	}
	r.warn()
	return forever
}

func (r *run) ask() {
	r.tell(syscall.SIGTERM)
	r.tell(syscall.SIGCONT) // a stopped process does not react to SIGTERM
}

// slay sends SIGKILL. The caller repeats it until no process is left, so that it reaches processes
// that were started meanwhile.
func (r *run) slay() {
	if r.killed.IsZero() {
		r.killed = time.Now()
		r.tell(syscall.SIGKILL)
		return
	}
	_ = r.signal(syscall.SIGKILL)
}

func (r *run) tell(s syscall.Signal) {
	if err := r.signal(s); err == syscall.EPERM && s != syscall.SIGCONT {
		r.say(Event{What: Forbidden, Signal: s, Err: err})
	}
}

// leftBehind ends the processes that the command left behind. It reports whether to stop waiting
// for them. While the lease lasts, it keeps waiting, as the lease covers them too.
func (r *run) leftBehind() bool {
	now := time.Now()
	switch {
	case !r.killed.IsZero():
		r.slay()
		return r.outcome.Lost != nil && now.Sub(r.killed) > lastWait
	case now.Sub(r.ended) < linger && r.outcome.Lost == nil:
	case r.asked.IsZero() && r.patience > 0:
		r.asked, r.outcome.LeftOver = now, true
		r.say(Event{What: LeftOver, Signal: syscall.SIGTERM})
		r.ask()
	case now.Sub(r.asked) >= r.patience:
		r.outcome.LeftOver = true
		r.say(Event{What: LeftOver, Signal: syscall.SIGKILL})
		r.slay()
	}
	return false
}

// pass passes on a signal that we got.
func (r *run) pass(s syscall.Signal) {
	r.tell(s)
	if r.suspended && slices.Contains(Endings(), os.Signal(s)) {
		r.tell(syscall.SIGCONT)
	}
	r.say(Event{What: Forwarded, Signal: s})
}
