package sqltest

import (
	"os/exec"
	"syscall"
)

// quit ends PostgreSQL's main process and all it has started, at once, and MariaDB
// as well. The next start would have to recover; there is none.
const quit = syscall.SIGQUIT

// limit runs a program as nobody if we are root, and ends it with us.
func limit(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: quit, Credential: credential()}
}
