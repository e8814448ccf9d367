package leash

import (
	"syscall"
	"time"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// guardAfter is when a command that still runs gets a watchdog. If we die before, the
// kernel kills the command, and a command so short has seldom started others; the watchdog
// costs as much as the shortest of them.
const guardAfter = 100 * time.Millisecond
