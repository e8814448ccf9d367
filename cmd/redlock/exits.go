package main

// Exit statuses, beside that of the command of run. Those from 64 to 78 are of
// sysexits.h, so that a script can tell a typing mistake from a lock that did not work;
// 126 and up are a shell's.
const (
	exitOK            = 0
	exitFailed        = 1
	exitUsage         = 64 // EX_USAGE: nothing has been done
	exitNoQuorum      = 69 // EX_UNAVAILABLE
	exitBusy          = 75 // EX_TEMPFAIL: somebody else has the lock
	exitLost          = 76 // EX_PROTOCOL: the lock was lost while the command ran
	exitCannotExecute = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the number of the signal
)

// exitError is an error with a status of its own. It may have no text: then all was said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }
