//go:build unix

package leash

import (
	"syscall"
	"time"
)

// stopped is called when the command stands still.
func (r *run) stopped(by syscall.Signal) {
	r.stands = true
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	if by == syscall.SIGSTOP && !r.lent && !r.offered {
		// su(1) and the like stop so for a child of theirs that wants the terminal. If it was
		// somebody's wish he has to say it again.
		r.offered, wants = true, true
	}
	switch {
	case wants && (r.borrowed() || r.lend()):
		r.resume()
	case wants && orphaned():
		r.tell(syscall.SIGHUP) // as the kernel does with those who stand still with nobody to see to them
		time.Sleep(tick)       // who ignores it comes back
		r.resume()
	case by != syscall.SIGSTOP || r.lent:
		r.suspend(by)
	}
}

// suspend stops the command and us, as whoever has typed ^Z expects, or whoever runs us in
// the background. The command stops first; whether it goes on hold decides, as nobody
// renews the lease meanwhile.
//
// We are stopped by the signal that has stopped the command: who waits for us learns what
// it wants, and the kernel drops it where nobody would continue us.
func (r *run) suspend(by syscall.Signal) {
	if !r.killed.IsZero() || !r.ended.IsZero() {
		return
	}
	_ = r.signal(syscall.SIGSTOP)
	r.say(Event{What: Stopped, Signal: by})
	lent := r.takeBack(false)
	if by == syscall.SIGSTOP {
		by = syscall.SIGTSTP
	}
	raise(by, lent) // who is in a pipeline with us has not got it either
	if lent {
		r.lend()
	}
	r.stands, r.held = true, true
}

// resume has the command go on.
func (r *run) resume() {
	_ = r.signal(syscall.SIGCONT)
	if r.held {
		r.say(Event{What: Resumed, Signal: syscall.SIGCONT})
	}
	r.stands, r.held = false, false
}
