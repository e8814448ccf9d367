//go:build unix && !linux

package sqltest

import (
	"os/exec"
	"syscall"
)

// quit is as on Linux.
const quit = syscall.SIGQUIT

// limit makes a program run as user nobody if we are root. These systems cannot end it when we
// end: a test that is killed leaves its servers behind.
func limit(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential()} }
