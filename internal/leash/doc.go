// Package leash runs a command for as long as a lease lasts, and not an instant longer. When
// the lease runs out, the command gets SIGTERM, and it gets SIGKILL before the lease is over.
// So do the processes that the command has started, if they are still in its process group
// or, on Linux, in our session.
//
// This is safe because the end of the lease is known in advance, and because signals need no
// answer: no process executes an instruction of its own after SIGKILL has reached it.
package leash

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Lease permits a command to run until a point in time. A *redlock.Lock is a Lease.
type Lease interface {
	// Until is the end of the lease. A renewal moves it on.
	Until() time.Time
	// Context is done if the lease is lost before Until; its cause says why.
	Context() context.Context
}

// Command is a program to run.
type Command struct {
	Path string   // the file to execute
	Args []string // the first is the program's name
	Env  []string // the whole environment; the last of two entries with one name counts

	// Grace is how long before the end of the lease the command gets SIGTERM. Processes that
	// it leaves behind have the same time to end after SIGTERM. With 0 no SIGTERM is sent.
	Grace time.Duration
	// Margin is how long before the end of the lease the command gets SIGKILL. It must exceed
	// the time by which a busy machine delays us.
	Margin time.Duration
}

// Outcome is how a command ended.
type Outcome struct {
	Status   int   // its exit status, or 128 plus the number of the signal that ended it
	Lost     error // why the lease was lost before the command had ended; nil if it was not
	LeftOver bool  // the command left processes behind, and we ended them
}

// ErrRunningOut means that the end of a lease came near, and no renewal moved it on.
var ErrRunningOut = errors.New("validity is running out")

// Niceness is the niceness that we set for ourselves, if we have the right to, so that we are
// in time to kill the command. The command keeps the niceness with which we were started.
const Niceness = -20

// Event is something that happened to a running command.
type Event struct {
	What What
	// Signal is the signal that was sent to the command. With Stopped and Halted it is the
	// signal that stopped the command; with Ended, the signal that ended it.
	Signal syscall.Signal
	PID    int       // the command's process id, with Started
	Status int       // the command's exit status as in Outcome, with Ended
	Until  time.Time // the end of the lease, with Started, Ending and Killed
	Err    error     // the reason, with Unguarded and Forbidden
}

// What is a kind of Event.
type What int

// Events, in the order in which they can happen.
const (
	Started   What = iota // the command runs
	Unguarded             // no watchdog could be started: nothing kills the command's group if we are killed
	Forwarded             // we passed on a signal that we got
	Hurried               // we now have the niceness Niceness
	Halted                // a SIGSTOP stopped the command; we go on
	Stopped               // the command is stopped, and we stop too
	Resumed               // we go on, and so does the command
	Ending                // the command got SIGTERM, as the lease runs out
	Killed                // the command got SIGKILL, as the lease is lost
	Forbidden             // we may not send the command a signal, as it runs as another user
	Ended                 // the command has ended by itself, or by a signal
	LeftOver              // the processes that the command left behind got SIGTERM or SIGKILL
)
