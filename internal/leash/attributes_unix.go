//go:build unix && !linux

package leash

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// guardAfter is when a command gets a watchdog: at once, as nothing else ends it.
const guardAfter = 0
