//go:build unix

package leash

import (
	"os"
	"runtime"
	"slices"
	"syscall"
)

// group is a command and what it starts.
type group struct {
	id int
	terminal
	watchdog
	alone bool // we have no child at all
}

// start starts the command, on a thread that lives until all is over: Linux takes the thread
// that starts a process for the parent whose death is signalled. It is not the caller's, as
// nobody can run on that thread when it is time to kill.
func (g *group) start(cmd Command, over <-chan struct{}) error {
	adopt()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- g.fork(cmd)
		<-over
	}()
	return <-started
}

// fork does without os.StartProcess, whose way to wait for a process knows nothing of those
// that stand still.
func (g *group) fork(cmd Command) error {
	attr := &syscall.ProcAttr{Env: cmd.Env, Files: []uintptr{0, 1, 2}, Sys: attributes()}
	pid, _, err := syscall.StartProcess(cmd.Path, cmd.Args, attr)
	if err == syscall.ENOEXEC { // a script without #!, which execvp(3) gives to a shell
		pid, _, err = syscall.StartProcess(shell, append([]string{shell, cmd.Path}, cmd.Args[1:]...), attr)
	}
	if err != nil {
		return &os.PathError{Op: "exec", Path: cmd.Path, Err: err}
	}
	g.id = pid
	return nil
}

const shell = "/bin/sh"

// reap tells whether the command has changed: stopped, or ended. All others who have ended
// are orphans of its making, or the watchdog.
//
// A process id is nobody else's until its process was reaped, which only we do and between
// two signals; and a group's not until the last of the group is gone.
func (g *group) reap() (status syscall.WaitStatus, changed bool) {
	for {
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case pid == g.id:
			return status, true
		case pid == g.watchdog.pid && pid > 0 && !status.Stopped():
			g.watchdog.died()
		case pid <= 0:
			g.alone = err == syscall.ECHILD
			return status, false
		}
	}
}

// signal reaches all of the command. Its error is that of the command's own group.
func (g *group) signal(s syscall.Signal) error {
	err := syscall.Kill(-g.id, s)
	for _, other := range g.others() {
		_ = syscall.Kill(-other, s)
	}
	return err
}

// others are groups of the command besides its own.
func (g *group) others() []int {
	ours := syscall.Getpgrp()
	return slices.DeleteFunc(offspring(), func(group int) bool {
		return group == g.id || group == ours || group == g.watchdog.pid
	})
}

// gone reports whether nobody is left of the group after its leader has ended.
func (g *group) gone() bool {
	if g.alone && adopts {
		return true
	}
	return absent(syscall.Kill(-g.id, 0)) && len(g.others()) == 0
}

func (g *group) close() {
	g.takeBack(false)
	g.terminal.close()
	g.dismiss()
}
