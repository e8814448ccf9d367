//go:build unix

package leash

import (
	"syscall"
	"time"
)

// stopped handles a command that a signal has stopped. After a SIGSTOP the sender will continue
// the command, as cpulimit(1) does many times a second. Meanwhile the lease is renewed.
func (r *run) stopped(by syscall.Signal) {
	r.suspended = true
	if by == syscall.SIGSTOP {
		by = r.stopReason()
	}
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	switch {
	case by == syscall.SIGSTOP:
		r.say(Event{What: Halted, Signal: by})
	case wants && (r.borrowed() || r.lend()):
		r.resume()
	case wants && orphaned():
		r.tell(syscall.SIGHUP) // as the kernel does with a stopped group that becomes orphaned
		time.Sleep(tick)       // a command that ignores SIGHUP comes back here
		r.resume()
	default:
		r.suspend(by)
	}
}

// suspend stops the command and then us. A user who typed ^Z, or runs us in the background,
// expects that. The lease is not renewed meanwhile, so after we were continued hold decides
// whether the command goes on.
//
// suspend stops us with the signal that has stopped the command. So our parent learns why the
// command stopped, and the kernel ignores the signal if no process would continue us.
func (r *run) suspend(by syscall.Signal) {
	if !r.killed.IsZero() || !r.ended.IsZero() {
		return
	}
	_ = r.signal(syscall.SIGSTOP)
	r.say(Event{What: Stopped, Signal: by})
	lent := r.takeBack(false)
	raise(by, lent) // if the terminal was lent, the others in our pipeline did not get the signal
	if lent {
		r.lend()
	}
	r.suspended, r.held = true, true
}

// resume continues the command.
func (r *run) resume() {
	_ = r.signal(syscall.SIGCONT)
	if r.held {
		r.say(Event{What: Resumed, Signal: syscall.SIGCONT})
	}
	r.suspended, r.held = false, false
}
