package sqltest

import (
	"os/exec"
	"syscall"
)

// quit ends PostgreSQL's main process, with all that it has started, and MariaDB at once. The
// next start would have to recover the data, but there is none.
const quit = syscall.SIGQUIT

// limit makes a program run as user nobody if we are root, and end when we end.
func limit(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: quit, Credential: credential()}
}
