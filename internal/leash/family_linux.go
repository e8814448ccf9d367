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

// adopts: who has no child then has no descendants.
const adopts = true

// adopt has the kernel give us what our command leaves behind, so that we learn of its end.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// offspring are the process groups of all who descend from us and are in our session:
// timeout(1), and a shell with job control, give what they start groups of its own. Who has
// left the session means to live on. Orphans are our children, so nobody is missed; who is
// started meanwhile is found by the next look.
func offspring() (groups []int) {
	session, _ := unix.Getsid(0)
	seen := []int{os.Getpid()}
	for i := 0; i < len(seen); i++ {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(seen[i]) + "/task/*/children")
		for _, file := range files {
			list, _ := os.ReadFile(file)
			for field := range strings.FieldsSeq(string(list)) {
				pid, _ := strconv.Atoi(field)
				if sid, err := unix.Getsid(pid); err != nil || sid != session || slices.Contains(seen, pid) {
					continue
				}
				seen = append(seen, pid)
				if group, err := unix.Getpgid(pid); err == nil && !slices.Contains(groups, group) {
					groups = append(groups, group)
				}
			}
		}
	}
	return groups
}

// absent reports that nobody is left of a group, by what it says to signal 0.
func absent(err error) bool { return err == syscall.ESRCH }

// raise sends a signal to us, or to all of our group, and has it do what it does by default.
// It is sent to this thread too, which is stopped, and all others with it, before it comes
// back from there. The kernel drops it where nobody would continue us.
//
// Package signal cannot bring the default back once a signal has had a handler.
func raise(s syscall.Signal, all bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel's struct sigaction begins with the handler, and has room here everywhere.
	type disposition [8]uintptr
	byDefault, ignored, before := disposition{}, disposition{1}, disposition{}
	set := func(to, from *disposition) {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), 8, 0, 0)
	}
	set(&ignored, &before)
	if all {
		_ = unix.Kill(0, s) // to the others: of two we could get one after we were continued
	}
	set(&byDefault, nil)
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), s)
	set(&before, nil)
}

// orphaned reports whether nobody would continue us if we were stopped: whoever has started
// our process group is not of our session, or is no more. The kernel stops nobody there.
func orphaned() bool {
	ours, _ := unix.Getpgid(0)
	session, _ := unix.Getsid(0)
	for pid := os.Getpid(); ; {
		if group, err := unix.Getpgid(pid); err != nil || group != ours {
			sid, err := unix.Getsid(pid)
			return err != nil || sid != session
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return true
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if pid, err = strconv.Atoi(fields[1]); err != nil || pid == 0 {
			return true
		}
	}
}

// hurry has us run before others, if we may: it is milliseconds of work, but work that must
// be done in time. Beside eight busy loops on two processors we were up to 350 ms late
// without. It counts within a session only, where Linux groups processes by these. Real-time
// scheduling is no way out: many such commands at once used up what it is allowed in each
// second, and then stood still for the rest of it.
func hurry() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, -20)
	}
}
