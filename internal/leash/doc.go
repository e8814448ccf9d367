// Package leash runs a command for as long as a lease lasts, and not an instant longer: when
// the lease runs out the command is asked to end, and killed before the lease is over. So
// is what it has started, as far as that stays in its process group or, on Linux, in our
// session.
//
// What makes that safe is that the end is known before it comes, and that all that has to
// be done by then are signals, which need nobody's answer: no process executes an
// instruction of its own after SIGKILL has reached it.
package leash

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// Lease is what a command may run under. A *redlock.Lock is one.
type Lease interface {
	// Until is the end of the lease. It may move on.
	Until() time.Time
	// Context is done when the lease was lost before that; its cause says why.
	Context() context.Context
}

// Command is a program to run.
type Command struct {
	Path string   // of the file
	Args []string // the first is the program's name
	Env  []string // the whole environment; of two with one name the last counts

	// Grace is how long before the end of the lease the command is asked to end, with
	// SIGTERM; also how long what it leaves behind may take to end. With 0 nobody is
	// asked.
	Grace time.Duration
	// Margin is how long before the end of the lease the command is killed, with
	// SIGKILL: more than a busy machine takes to let us send that.
	Margin time.Duration
}

// Outcome is how a command ended.
type Outcome struct {
	Status   int   // its exit status, or 128 and the number of the signal that ended it
	Lost     error // why it had no lease to its end; nil: it had
	LeftOver bool  // it left processes of its group behind, which were ended
}

// ErrRunningOut is the loss of a lease whose end came near and was not moved on.
var ErrRunningOut = errors.New("validity is running out")

// Event is something that happened to a running command.
type Event struct {
	What What
	// Signal is what was sent to the command's group; of Stopped what stopped the command.
	Signal syscall.Signal
	PID    int       // of Started
	Until  time.Time // end of the lease, of what is due to it
	Err    error     // of Unguarded and Forbidden: why
}

// What happened.
type What int

// Events, in the order in which they can happen.
const (
	Started   What = iota // the command runs
	Unguarded             // nobody will kill its group should we be killed
	Forwarded             // a signal that we got was passed on
	Stopped               // it stands still, and so do we
	Resumed               // we go on, and so does it
	Ending                // it was told to end, as the lease runs out
	Killed                // it was killed, as the lease is over
	Forbidden             // it could not be told, as it is another user's
	Ended                 // it has ended by itself, or of a signal
	LeftOver              // what it left behind was told to end
)
