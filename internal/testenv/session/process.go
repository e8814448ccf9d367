//go:build unix

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// program is a process of a script. It prints to files and not to pipes: a child that it leaves
// behind then delays nobody, and a script can read along.
type program struct {
	cmd      *exec.Cmd
	out, err string // files
	done     chan struct{}
	known    bool // the script knows how it ended
}

func (p *program) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // fails only for a process that has ended
	<-p.done
}

func (p *program) printed() string {
	out, _ := os.ReadFile(p.out)
	text, _ := os.ReadFile(p.err)
	return fmt.Sprintf("[stdout]\n%s[stderr]\n%s", out, text)
}

func (s *Session) start(args []string) (err error) {
	if len(args) < 2 {
		return errors.New("usage: start NAME PROGRAM ARG… [< FILE]")
	}
	name, args := args[0], args[1:]
	if old := s.programs[name]; old != nil && old.running() {
		return fmt.Errorf("%s still runs", name)
	}
	p := &program{out: s.MkAbs(name + ".out"), err: s.MkAbs(name + ".err"), done: make(chan struct{})}
	var input *os.File // nil is the null device
	if n := len(args); n > 2 && args[n-2] == "<" {
		if input, err = os.Open(s.MkAbs(args[n-1])); err != nil {
			return err
		}
		defer input.Close()
		args = args[:n-2]
	}
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Dir, p.cmd.Env = s.MkAbs("."), s.env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a job of its own, as in a shell
	if input != nil {
		p.cmd.Stdin = input
	}
	out, err := os.Create(p.out)
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := os.Create(p.err)
	if err != nil {
		return err
	}
	defer errs.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, errs
	if err := p.cmd.Start(); err != nil {
		return err
	}
	s.programs[name] = p
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // ProcessState has the result
	}()
	return nil
}

func (s *Session) ended(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: ended NAME STATUS")
	}
	p := s.programs[args[0]]
	if p == nil {
		return fmt.Errorf("no program %q", args[0])
	}
	select {
	case <-p.done:
	case <-time.After(Limit):
		_ = p.cmd.Process.Signal(syscall.SIGABRT) // prints where it hangs
		<-p.done
		return fmt.Errorf("%s hangs\n%s", args[0], p.printed())
	}
	p.known = true
	_, _ = io.WriteString(s.Stdout(), s.ReadFile(p.out))
	_, _ = io.WriteString(s.Stderr(), s.ReadFile(p.err))
	if got := exitStatus(p.cmd.ProcessState); got != args[1] {
		return fmt.Errorf("%s ended with %s, want %s", args[0], got, args[1])
	}
	return nil
}

// exitStatus returns a program's exit status, or the name of the signal that ended it.
func exitStatus(state *os.ProcessState) string {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return strconv.Itoa(state.ExitCode())
}

func (s *Session) exits(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: exits STATUS PROGRAM ARG… [< FILE]")
	}
	if err := s.start(append([]string{"last"}, args[1:]...)); err != nil {
		return err
	}
	return s.ended([]string{"last", args[0]})
}

// ours matches a line that our commands write to stderr.
var ours = regexp.MustCompile(`^redlock(-lab)?: `)

func (s *Session) says(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: says PATTERN")
	}
	said := s.ReadFile("stderr")
	if !ours.MatchString(said) || strings.Index(said, "\n") != len(said)-1 {
		return fmt.Errorf("want one line by redlock, got %q", said)
	}
	if strings.Contains(said, "s3cret") {
		return fmt.Errorf("a password in %q", said)
	}
	return matches(said, args[0])
}

func matches(text, pattern string) error {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	if !re.MatchString(text) {
		return fmt.Errorf("no %#q in\n%s", pattern, text)
	}
	return nil
}

func (s *Session) signal(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: signal SIGNAL WHO")
	}
	sig := unix.SignalNum("SIG" + args[0])
	pid, err := s.pid(args[1])
	if sig == 0 || err != nil {
		return fmt.Errorf("signal %s to %s: %w", args[0], args[1], err)
	}
	return syscall.Kill(pid, sig)
}

// pid returns the process id of a program, or the one that a process has written to a file.
func (s *Session) pid(who string) (int, error) {
	if p := s.programs[who]; p != nil {
		if !p.running() {
			return 0, fmt.Errorf("%s has ended", who)
		}
		return p.cmd.Process.Pid, nil
	}
	text, err := os.ReadFile(s.MkAbs(who))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(bytes.TrimSpace(text)))
}

// until waits for a state of a process.
func (s *Session) until(args []string, what string, is func(state byte) bool) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: %s WHO", what)
	}
	pid, err := s.pid(args[0])
	if err != nil {
		return err
	}
	return Eventually(args[0]+" is "+what, func() bool { return is(processState(pid)) })
}

func (s *Session) stopped(args []string) error {
	return s.until(args, "stopped", func(state byte) bool { return state == 'T' })
}

func (s *Session) gone(args []string) error { return s.until(args, "gone", over) }

// over reports whether a process has ended. A zombie has, although nobody has asked for its status.
func over(state byte) bool { return state == 0 || state == 'Z' || state == 'X' }

func (s *Session) alive(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: alive WHO")
	}
	pid, err := s.pid(args[0])
	if err == nil && over(processState(pid)) {
		err = fmt.Errorf("%s is gone", args[0])
	}
	return err
}

// processState returns the letter that ps(1) shows for a process, or 0 if there is no such process.
func processState(pid int) byte {
	// On Linux the letter follows the name, which is in parentheses and may itself contain some.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if i := bytes.LastIndexByte(stat, ')'); err == nil && len(stat) > i+2 {
		return stat[i+2]
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return 0
	}
	out, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if out = bytes.TrimSpace(out); len(out) > 0 {
		return out[0]
	}
	return 0
}

func (s *Session) children(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: children WHO N")
	}
	pid, err := s.pid(args[0])
	if err != nil {
		return err
	}
	return Eventually(args[0]+" has "+args[1]+" children", func() bool {
		all, _ := exec.Command("ps", "-A", "-o", "ppid=").Output()
		n := 0
		for parent := range strings.FieldsSeq(string(all)) {
			if parent == strconv.Itoa(pid) {
				n++
			}
		}
		return strconv.Itoa(n) == args[1]
	})
}

func (s *Session) await(args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return errors.New("usage: await FILE [PATTERN]")
	}
	pattern := ""
	if len(args) == 2 {
		pattern = args[1]
	}
	var last error
	if err := Eventually("", func() bool {
		text, err := os.ReadFile(s.MkAbs(args[0]))
		if last = err; err == nil {
			last = matches(string(text), pattern)
		}
		return last == nil
	}); err != nil {
		return fmt.Errorf("%s: never: %w", args[0], last)
	}
	return nil
}
