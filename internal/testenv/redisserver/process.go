package redisserver

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// startTimeout bounds a start on a loaded machine; an idle one needs about 10 ms.
const startTimeout = 30 * time.Second

// errPortTaken reports that another program listens on the reserved port.
var errPortTaken = errors.New("port taken")

// command describes how to run a server; it can be run several times.
type command struct {
	path  string
	args  []string
	dir   string
	ready string // the server logs a line with this text when it listens
}

// process is one run of a server.
type process struct {
	cmd  *exec.Cmd
	log  *serverLog
	done chan struct{} // closed when the process has been waited for
}

// run starts a server and returns when it has logged that it listens. After an error nothing
// is left running.
//
// One goroutine, locked to its thread, starts the process and waits for it. On Linux, the
// signal at the death of the parent is sent when the thread that started the process ends,
// even if the parent process lives. On an unlocked thread, the server could be killed at any
// time.
func (c command) run() (*process, error) {
	p := &process{
		cmd:  exec.Command(c.path, c.args...),
		log:  newServerLog(c.ready),
		done: make(chan struct{}),
	}
	p.cmd.Dir = c.dir
	p.cmd.Stdout = p.log
	p.cmd.Stderr = p.log
	p.cmd.WaitDelay = time.Second // a forked child of the server may hold the pipe
	dieWithParent(p.cmd)

	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := p.cmd.Start(); err != nil {
			started <- err
			return
		}
		unguard, err := guard(p.cmd.Process.Pid)
		if err != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			started <- err
			return
		}
		started <- nil
		_ = p.cmd.Wait() // the log says how it ended
		unguard()
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("redisserver: start %s: %w", c.path, err)
	}

	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case <-p.log.ready:
		return p, nil
	case <-p.done:
		text := p.log.String()
		if strings.Contains(text, "Address already in use") || strings.Contains(text, "Failed listening on") {
			return nil, fmt.Errorf("redisserver: %w:\n%s", errPortTaken, text)
		}
		return nil, fmt.Errorf("redisserver: server ended at its start:\n%s", text)
	case <-timeout.C:
		p.kill()
		return nil, fmt.Errorf("redisserver: server not ready after %v:\n%s", startTimeout, p.log)
	}
}

// alive reports whether the process has not ended yet.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL, which also ends a stopped process, and waits.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only for a process that has ended
	<-p.done
}

// pause stops the process and returns when the system reports it as stopped.
func (p *process) pause() error {
	if !p.alive() {
		return errors.New("redisserver: pause: server is not running")
	}
	if err := suspend(p.cmd.Process); err != nil {
		return fmt.Errorf("redisserver: pause: %w", err)
	}
	return poll(10*time.Second, time.Millisecond, func() error {
		if !p.alive() {
			return final{errors.New("redisserver: pause: server ended")}
		}
		stopped, err := suspended(p.cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("redisserver: pause: %w", err)
		}
		if !stopped {
			return errors.New("redisserver: pause: server still runs")
		}
		return nil
	})
}

// resume continues a paused process; it does nothing to a running one.
func (p *process) resume() error {
	if !p.alive() {
		return errors.New("redisserver: resume: server is not running")
	}
	if err := proceed(p.cmd.Process); err != nil {
		return fmt.Errorf("redisserver: resume: %w", err)
	}
	return nil
}
