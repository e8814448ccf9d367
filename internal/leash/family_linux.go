package leash

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adopts reports whether adopt works on this system. If it does, a process without children has
// no descendants either.
const adopts = true

// adopt makes us the parent of the processes that our command leaves behind, so that we learn
// of their end.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// descendants returns all processes that descend from root and are in our session. A process
// that has left the session is meant to live on. Orphans of our command become our children, so
// descendants misses none. The next call finds a process that starts during this one.
func descendants(root int) []int {
	session, _ := unix.Getsid(0)
	seen := []int{root}
	for i := 0; i < len(seen); i++ {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(seen[i]) + "/task/*/children")
		for _, file := range files {
			list, _ := os.ReadFile(file)
			for field := range strings.FieldsSeq(string(list)) {
				pid, _ := strconv.Atoi(field)
				if sid, err := unix.Getsid(pid); err == nil && sid == session && !slices.Contains(seen, pid) {
					seen = append(seen, pid)
				}
			}
		}
	}
	return seen[1:]
}

// offspring returns the process groups of root's descendants. There can be several: timeout(1),
// and a shell with job control, create a group for each command that they start.
func offspring(root int) (groups []int) {
	for _, pid := range descendants(root) {
		if group, err := unix.Getpgid(pid); err == nil && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// stat returns the fields of /proc/PID/stat from the third one, the state, on, or nil if there is
// no such process.
func stat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The second field is the name in parentheses, and the name may contain parentheses too.
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// stopReason returns the signal behind a SIGSTOP that has stopped the command. su(1) and similar
// programs stop themselves with SIGSTOP after a child of theirs was stopped because it used the
// terminal, or by ^Z. If no other process of the command is stopped for such a reason, somebody
// has sent SIGSTOP to the command.
func (g *group) stopReason() syscall.Signal {
	for _, pid := range descendants(os.Getpid()) {
		fields := stat(pid)
		if pid == g.id || pid == g.watchdog.pid || len(fields) < 50 || fields[0] != "T" {
			continue
		}
		// exit_code is the signal that has stopped the process, or 0 if we may not know.
		switch by, _ := strconv.Atoi(fields[49]); {
		case by == 0 && g.lent:
			return syscall.SIGTSTP
		case by == 0:
			return syscall.SIGTTIN
		case by != int(syscall.SIGSTOP):
			return syscall.Signal(by)
		}
	}
	return syscall.SIGSTOP
}

// absent reports whether no process of a group is left. err is the error of sending it signal 0.
func absent(err error) bool { return err == syscall.ESRCH }

// raise sends a signal to us, or to all of our group, with the signal's default action. It sends
// the signal to this very thread, so that the whole process is stopped before Tgkill returns.
// The kernel ignores a stop signal from the terminal if no process would continue us.
//
// raise does not use package signal, which cannot restore the default action of a signal that
// has had a handler.
func raise(s syscall.Signal, all bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	byDefault, ignored, before := disposition{}, disposition{ignore}, disposition{}
	sigaction(s, &ignored, &before)
	if all {
		_ = unix.Kill(0, s) // for the others; we ignore it, as a second signal could stop us again later
	}
	sigaction(s, &byDefault, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s)
	sigaction(s, &before, nil)
}

// disposition holds the kernel's struct sigaction, which begins with the handler. It is large
// enough for that struct on all architectures.
type disposition [8]uintptr

func sigaction(s syscall.Signal, to, from *disposition) {
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), 8, 0, 0)
}

// ignoredNow reports whether the kernel now ignores a signal to us.
func ignoredNow(s syscall.Signal) bool {
	var now disposition
	sigaction(s, nil, &now)
	return now[0] == ignore
}

// orphaned reports whether no process would continue us if we were stopped: the process that
// started our process group is in another session, or has ended. In such a group the kernel
// ignores stop signals from the terminal.
func orphaned() bool {
	ours, _ := unix.Getpgid(0)
	session, _ := unix.Getsid(0)
	for pid := os.Getpid(); ; {
		if group, err := unix.Getpgid(pid); err != nil || group != ours {
			sid, err := unix.Getsid(pid)
			return err != nil || sid != session
		}
		fields := stat(pid)
		if len(fields) < 2 {
			return true
		}
		var err error
		if pid, err = strconv.Atoi(fields[1]); err != nil || pid == 0 {
			return true
		}
	}
}

// hurry raises our priority, if we have the right to, and reports whether it could. We have only
// milliseconds of work, but must do it in time: without the priority, beside eight busy loops on
// two processors, we were up to 350 ms late. If Linux groups processes by session (autogroup),
// the priority counts only within our session. Real-time scheduling does not help: when many
// commands ran at once, they used up the real-time share of each second and then stood still
// for the rest of it.
func hurry() (hurried bool) {
	if inherited == nil {
		if value, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil {
			niceness := 20 - value // as the kernel returns it
			inherited = &niceness
		}
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		hurried = unix.Setpriority(unix.PRIO_PROCESS, tid, Niceness) == nil || hurried
	}
	return hurried
}

// inherited is the niceness with which we were started, once hurry was called; nil before that.
var inherited *int

// calm gives this thread the niceness with which we were started, for a command that it is about to
// start. The next hurry takes it away.
func calm() {
	if inherited != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), *inherited)
	}
}
