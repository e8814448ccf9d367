//go:build unix

package leash

import (
	"os"
	"strconv"
	"syscall"
)

// watchdog kills the group if we are killed: it is a shell that reads from a pipe of which
// we alone have the other end, and nobody ever writes to it.
type watchdog struct {
	pid int // 0: none
	end *os.File
}

const bark = `trap '' HUP INT QUIT TERM; read x; kill -s KILL -- "-$0"`

func (g *group) guard() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	pid, _, err := syscall.StartProcess(shell,
		[]string{"redlock-watchdog", "-c", bark, strconv.Itoa(g.id)},
		&syscall.ProcAttr{Files: []uintptr{read.Fd()}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		_ = write.Close()
		return &os.PathError{Op: "exec", Path: shell, Err: err}
	}
	g.watchdog = watchdog{pid, write}
	return nil
}

// died is called when it was reaped: its id may be another's then.
func (w *watchdog) died() {
	_ = w.end.Close()
	*w = watchdog{}
}

func (w *watchdog) dismiss() {
	if w.pid == 0 {
		return
	}
	_ = syscall.Kill(w.pid, syscall.SIGKILL)
	for {
		if _, err := syscall.Wait4(w.pid, nil, 0, nil); err != syscall.EINTR {
			break
		}
	}
	w.died()
}
