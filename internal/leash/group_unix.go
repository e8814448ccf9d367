//go:build unix

package leash

import (
	"os"
	"runtime"
	"slices"
	"syscall"
)

// group is a command and the processes that it starts.
type group struct {
	id int
	terminal
	watchdog
	alone bool // we have no children
}

// start starts the command on a thread that lives until over is closed: Linux sends Pdeathsig
// when the thread that started the process ends. The thread is not the caller's, so that the
// caller is not bound to one thread when it is time to kill.
func (g *group) start(cmd Command, over <-chan struct{}) error {
	adopt()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		calm()
		started <- g.fork(cmd)
		<-over
	}()
	return <-started
}

// fork starts the process. It does not use os.StartProcess, as os.Process.Wait does not report
// stopped processes.
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

// shell runs scripts that do not name an interpreter.
const shell = "/bin/sh"

// reap reports whether the command has stopped or ended, and its status. Other children that
// have ended are orphans of the command, or the watchdog.
//
// The system does not reuse a process id before the process was reaped. Only reap reaps, and never
// while a signal is being sent. The system does not reuse a group's id before the last process
// of the group is gone.
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

// signal sends a signal to all groups of the command. It returns the error of the command's own
// group.
func (g *group) signal(s syscall.Signal) error {
	err := syscall.Kill(-g.id, s)
	for _, other := range g.others() {
		_ = syscall.Kill(-other, s)
	}
	return err
}

// others returns the groups of the command besides its own.
func (g *group) others() []int {
	ours := syscall.Getpgrp()
	return slices.DeleteFunc(offspring(os.Getpid()), func(group int) bool {
		return group == g.id || group == ours || group == g.watchdog.pid
	})
}

// gone reports whether no process of the command is left after the command itself has ended.
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
