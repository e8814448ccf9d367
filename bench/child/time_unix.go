//go:build unix

package child

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time that this process has used, user and system.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
