//go:build unix && !linux

package leash

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// guardAfter is the time after which a running command gets a watchdog. It gets one at once, as
// the kernel does not kill the command if we die.
const guardAfter = 0
