//go:build unix && !linux

package leash

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// guardAfter is how long a command has run when it gets a watchdog. It gets one at once, as the
// kernel does not kill the command if we die.
const guardAfter = 0
