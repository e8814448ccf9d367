//go:build unix

package leash

import (
	"encoding/binary"
	"math"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watchdog is a process that kills the command if we are killed, or if we are stopped and the
// lease comes to its end. It runs this program again, and reads from a pipe of which only we have
// the other end. We send it the time at which to kill, and a new time after each renewal.
type watchdog struct {
	pid     int       // the watchdog's process id; 0 if there is none
	end     *os.File  // our end of the pipe
	sent    time.Time // the time that was sent last
	overdue bool      // an earlier time had passed when the next one was sent
}

// fired reports whether the watchdog's time has come, so that it has killed, or is about to.
// That can be before the lease ends: if we are continued just then, we may even renew it.
func (w *watchdog) fired(now time.Time) bool {
	return w.overdue || !w.sent.IsZero() && !now.Before(w.sent)
}

const watchdogName = "redlock-watchdog"

// init runs the watchdog, in place of main, if this program was started as one.
func init() {
	if len(os.Args) == 3 && os.Args[0] == watchdogName {
		parent, _ := strconv.Atoi(os.Args[1])
		group, _ := strconv.Atoi(os.Args[2])
		beWatchdog(parent, group)
		os.Exit(0)
	}
}

// guard starts the watchdog.
func (g *group) guard() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	pid, _, err := syscall.StartProcess(self,
		[]string{watchdogName, strconv.Itoa(os.Getpid()), strconv.Itoa(g.id)},
		&syscall.ProcAttr{Files: []uintptr{read.Fd()}, Env: []string{"GOMAXPROCS=1"}, Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		_ = write.Close()
		return &os.PathError{Op: "exec", Path: self, Err: err}
	}
	g.watchdog = watchdog{pid: pid, end: write}
	return nil
}

// order sends the watchdog the time at which to kill. It does not block if the watchdog does not
// read.
func (w *watchdog) order(t time.Time) {
	if w.pid == 0 || t.Equal(w.sent) {
		return
	}
	w.overdue = w.fired(time.Now())
	w.sent = t
	// Read the clock first: if we are stopped between the two reads, the time is too early and
	// not too late.
	at := uptime()
	at += time.Until(t)
	message := binary.NativeEndian.AppendUint64(nil, uint64(at))
	if conn, err := w.end.SyscallConn(); err == nil {
		_ = conn.Write(func(fd uintptr) bool {
			_, _ = syscall.Write(int(fd), message)
			return true
		})
	}
}

// uptime reads a clock that all processes share and that cannot be set.
func uptime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}

// beWatchdog waits until it is time to kill, or parent is dead. It then kills group, and the other
// groups that descend from parent.
func beWatchdog(parent, group int) {
	signal.Ignore() // all signals: they are for the command
	for at := time.Duration(math.MaxInt64); ; {
		left := at - uptime()
		if left <= 0 {
			break
		}
		fds := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
		// Add a millisecond, as the division rounds down. Wake up at least once an hour.
		n, err := unix.Poll(fds, int(min(left, forever)/time.Millisecond)+1)
		if err == unix.EINTR || err == nil && n == 0 {
			continue
		}
		var message [8]byte
		if n, err := syscall.Read(0, message[:]); err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		} else if n < len(message) {
			break // our parent is dead
		}
		at = time.Duration(binary.NativeEndian.Uint64(message[:]))
	}
	ours, parents := syscall.Getpgrp(), 0
	if id, err := unix.Getpgid(parent); err == nil {
		parents = id
	}
	// Repeat this for processes that are started meanwhile. A dead parent has no descendants, so
	// only group is killed then.
	for began := uptime(); uptime()-began < lastWait; time.Sleep(tick) {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		left := 0
		for _, other := range offspring(parent) {
			if other != ours && other != parents {
				_ = syscall.Kill(-other, syscall.SIGKILL)
				left++
			}
		}
		if left == 0 {
			return
		}
	}
}

// died records that the watchdog was reaped. From then on another process may have its id.
func (w *watchdog) died() {
	_ = w.end.Close()
	*w = watchdog{overdue: w.fired(time.Now())}
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
