//go:build unix

package leash

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Signals are those that end a program from outside, and that Run passes on.
func Signals() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
}

// Run starts the command with our stdin, stdout and stderr in a process group of its own,
// and returns when it has ended, and all that it has left behind.
//
// A signal that comes through the channel is sent to all of the command. A SIGTSTP that we
// get stops first the command and then us; when we are continued the command goes on if
// there is still a lease, and is killed if not. The terminal is lent to the command when it
// asks for it.
//
// The command is asked to end and killed as Command says. If the lease is lost before its
// end it is killed at once, as somebody else may have it already. If we are killed so is the
// command's group: by a process that waits for nothing else, and on Linux the command itself
// by the kernel.
//
// say is told of events by the caller's goroutine, which it must not keep waiting. An error
// means that the command was not started; nor was it if the outcome is a loss and nothing
// was said. Afterwards SIGTTOU is ignored.
func Run(cmd Command, lease Lease, signals <-chan os.Signal, say func(Event)) (Outcome, error) {
	r := run{
		lease: lease, say: say, patience: cmd.Grace,
		reins: reins{grace: cmd.Grace, margin: cmd.Margin},
	}
	if act, _ := r.due(time.Now(), lease.Until(), lease.Context().Err() != nil); act != wait {
		r.lose()
		return r.outcome, nil
	}

	children := make(chan os.Signal, 1) // one is enough: each has us look at all of them
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	r.typed = make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(r.typed, syscall.SIGTSTP)
		defer signal.Stop(r.typed)
	}
	over := make(chan struct{})
	defer close(over)
	err := r.start(cmd, over)
	// We must not be stopped for writing a line while we are in the background, as nobody
	// else kills the command, which would inherit it if we ignored that before.
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

// run is a command that runs, or what it has left behind.
type run struct {
	group
	reins
	lease    Lease
	say      func(Event)
	patience time.Duration  // with what it left behind
	typed    chan os.Signal // SIGTSTP

	guardAt time.Time // when to start the watchdog; zero: that is done
	stands  bool      // the command was stopped
	held    bool      // by us, until there is a look at the lease
	offered bool      // the terminal, to who stood still for no reason that we know
	ended   time.Time // the command, not all of its group; zero: it runs
	asked   time.Time // what it left behind, to end
	killed  time.Time
	outcome Outcome
}

const (
	// linger is how long what a command left behind may take to end by itself: what a
	// shell does not wait for, such as a process that still reads its output.
	linger = 500 * time.Millisecond
	// tick is how often it is looked at, and a lease that was about to end when we were
	// continued.
	tick = 10 * time.Millisecond
	// lastWait is how long who was killed without a lease may take to be gone. Who is
	// not is in the kernel, or another user's.
	lastWait = time.Second
	// forever is until something happens.
	forever = time.Hour
)

// step does what is due, and tells after which time to look again, or that all is over.
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

// end takes note that the command has ended, and whether it had its lease until now.
func (r *run) end(status syscall.WaitStatus) {
	r.ended = time.Now()
	r.outcome.Status = status.ExitStatus()
	event := Event{What: Ended}
	if status.Signaled() {
		event.Signal = status.Signal()
		r.outcome.Status = 128 + int(status.Signal())
	}
	if !r.ended.Before(r.lease.Until()) || r.lease.Context().Err() != nil {
		r.lose()
	}
	r.takeBack(!r.killed.IsZero())
	r.say(event)
}

// lose takes note of why, once.
func (r *run) lose() {
	switch cause := context.Cause(r.lease.Context()); {
	case r.outcome.Lost != nil:
	case cause != nil:
		r.outcome.Lost = cause
	default:
		r.outcome.Lost = ErrRunningOut
	}
}

// hold does to the command what its lease demands, and returns for how long there is
// nothing more to do.
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
		return tick // nobody could renew the lease while we were stopped, and now it is
	case r.held:
		r.resume()
	case act == ask:
		r.reins.asked(until)
		r.lose()
		r.ask()
		r.say(Event{What: Ending, Signal: syscall.SIGTERM, Until: until})
		return tick
	}
	return time.Until(next)
}

// watch starts the watchdog when it is time, puts us ahead of who makes the machine busy, and returns how long that is off.
func (r *run) watch() time.Duration {
	if r.guardAt.IsZero() {
		return forever
	}
	if left := time.Until(r.guardAt); left > 0 {
		return left
	}
	r.guardAt = time.Time{}
	hurry()
	if err := r.guard(); err != nil {
		r.say(Event{What: Unguarded, Err: err})
	}
	return forever
}

func (r *run) ask() {
	r.tell(syscall.SIGTERM)
	r.tell(syscall.SIGCONT) // who stands still does not hear
}

// slay is called again until nobody is left: who was started meanwhile is found then.
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

// leftBehind ends who is left of the command, and reports whether to give them up: not as
// long as there is a lease, which is theirs too.
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

// pass sends a signal on that we got.
func (r *run) pass(s syscall.Signal) {
	r.tell(s)
	if r.stands {
		r.tell(syscall.SIGCONT)
	}
	r.say(Event{What: Forwarded, Signal: s})
}
