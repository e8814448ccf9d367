package cli

// Exit statuses, beside that of the command of run. Those from 64 to 78 are of
// sysexits.h, so that a script can tell a typing mistake from a lock that did not work;
// 126 and up are a shell's.
const (
	ExitOK            = 0
	ExitFailed        = 1
	ExitUsage         = 64 // EX_USAGE: nothing has been done
	ExitNoQuorum      = 69 // EX_UNAVAILABLE
	ExitBusy          = 75 // EX_TEMPFAIL: somebody else has the lock
	ExitLost          = 76 // EX_PROTOCOL: the lock was lost while the command ran
	ExitCannotExecute = 126
	ExitNotFound      = 127
	ExitSignal        = 128 // and the number of the signal
)

// ExitError is an error with a status of its own. It may have no text: then all was said.
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
