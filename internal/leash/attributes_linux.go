package leash

import (
	"syscall"
	"time"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// guardAfter is the time after which a running command gets a watchdog. If we die before that,
// the kernel kills the command, which has seldom started other processes so early. A watchdog
// costs as much as the shortest of commands.
const guardAfter = 100 * time.Millisecond
