package cli

// Exit statuses of the commands. run may also exit with the status of its command. Those from 64 to
// 78 are from sysexits.h, so that a script can tell a typing mistake from a lock that did not work.
// Those from 126 up are a shell's.
const (
	ExitOK            = 0
	ExitFailed        = 1
	ExitUsage         = 64 // EX_USAGE: nothing was done
	ExitNoQuorum      = 69 // EX_UNAVAILABLE
	ExitBusy          = 75 // EX_TEMPFAIL: another client has the lock
	ExitLost          = 76 // EX_PROTOCOL: the lock was lost while the command ran
	ExitCannotExecute = 126
	ExitNotFound      = 127
	ExitSignal        = 128 // plus the number of the signal
)

// ExitError is an error with its own exit status. It has no text if there is nothing more to say.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }
