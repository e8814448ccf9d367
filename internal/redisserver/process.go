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

// errPortTaken says that a stranger listens on the port that was reserved.
var errPortTaken = errors.New("port taken")

// command is what it takes to run a server, again and again.
type command struct {
	path  string
	args  []string
	dir   string
	ready string // the server logs a line with this text when it listens
}

// process is one life of a server.
type process struct {
	cmd  *exec.Cmd
	log  *serverLog
	done chan struct{} // closed when it has been waited for
}

// run starts a server and returns when it has logged that it listens. On an
// error nothing is left running.
//
// The process is started and waited for by one goroutine that keeps its
// operating system thread: on Linux the parent of a process, for the signal sent
// at the parent's death, is the thread and not the process. A goroutine that
// shared its thread would see it end, and the server with it, at any time.
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
		_ = p.cmd.Wait() // how it ended is in the log
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

// alive reports whether the process has not been waited for yet.
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

// kill sends SIGKILL, which a stopped process obeys as well, and waits.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill() // fails only for a process that has ended
	<-p.done
}

// pause stops the process and returns once the system says it is stopped.
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

// resume lets a paused process go on; a running one is left as it is.
func (p *process) resume() error {
	if !p.alive() {
		return errors.New("redisserver: resume: server is not running")
	}
	if err := proceed(p.cmd.Process); err != nil {
		return fmt.Errorf("redisserver: resume: %w", err)
	}
	return nil
}
