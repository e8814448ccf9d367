//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// member is the part of a client that runs in the test: it controls the process.
type member struct {
	number int
	cmd    *exec.Cmd
	orders io.WriteCloser
	done   chan struct{} // closed when the process has been waited for

	// read after done
	err    error
	stderr bytes.Buffer
}

// startMember starts a client process whose events go to record.
//
// One goroutine, locked to its thread, starts the process, reads its events and waits for it,
// because the signal at the parent's death is sent when the thread that started the process
// ends. That signal also kills a stopped process, which does not see its input end.
func startMember(config clientConfig, record func(history.Event)) (*member, error) {
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	m := &member{number: config.Client, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	m.cmd.Env = append(os.Environ(), clientEnv+"="+string(encoded))
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.cmd.Stderr = &m.stderr
	if m.orders, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	events, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go func() {
		defer close(m.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := m.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		heard := m.hear(events, record)
		m.err = errors.Join(m.cmd.Wait(), heard)
	}()
	if err := <-started; err != nil {
		<-m.done
		return nil, fmt.Errorf("client %d: %w", m.number, err)
	}
	return m, nil
}

// hear records what the client writes until it ends.
func (m *member) hear(events io.Reader, record func(history.Event)) error {
	lines := bufio.NewScanner(events)
	var garbled error
	for lines.Scan() {
		var e history.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			garbled = errors.Join(garbled, fmt.Errorf("%w: %q", err, lines.Text()))
			continue
		}
		record(e)
	}
	return errors.Join(garbled, lines.Err())
}

// pause and resume fail for a client that has ended, which is detected at the end.
func (m *member) pause()  { _ = m.cmd.Process.Signal(syscall.SIGSTOP) }
func (m *member) resume() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends the client and returns when all its events have been read. If the client had
// already ended, kill reports how.
func (m *member) kill() error {
	_ = m.cmd.Process.Kill()
	<-m.done
	if status, ok := m.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		return m.complaint(nil)
	}
	return m.complaint(m.err)
}

// settle makes the client lock every key once more and end by itself.
func (m *member) settle() error {
	if _, err := io.WriteString(m.orders, settle); err != nil {
		<-m.done
		return m.complaint(errors.Join(err, m.err))
	}
	timer := time.NewTimer(3 * hang)
	defer timer.Stop()
	select {
	case <-m.done:
		return m.complaint(m.err)
	case <-timer.C:
	}
	// The stacks of its goroutines show where it hangs.
	_ = m.cmd.Process.Signal(syscall.SIGQUIT)
	timer.Reset(hang)
	select {
	case <-m.done:
	case <-timer.C:
		_ = m.kill()
	}
	return m.complaint(errors.New("hangs"))
}

// complaint returns err with the client's output, such as a panic or a race. It returns nil if
// there is neither an error nor output.
func (m *member) complaint(err error) error {
	switch {
	case err == nil && m.stderr.Len() == 0:
		return nil
	case err == nil:
		err = errors.New("it complained")
	}
	return fmt.Errorf("client %d: %w\n%s", m.number, err, m.stderr.Bytes())
}
