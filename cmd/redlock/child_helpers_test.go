//go:build unix

package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/quorumlock/redlock/internal/testenv/session"
)

// child is the command that scripts run under a lock. It does what its flags say and ends. It waits
// only for files and signals, except for short pauses.
type child struct {
	name    string
	log     string
	started string
	until   string
	hang    bool
	trap    int
	ignore  bool
	exit    int
	die     string
	print   string
	with    string
	setsid  bool
	leave   bool
	beat    string
}

func (c *child) flags(set *flag.FlagSet) {
	set.StringVar(&c.name, "name", "child", "`who` it is in its log")
	set.StringVar(&c.log, "log", "", "`file` to add what happens to, with the time")
	set.StringVar(&c.started, "started", "", "`file` to write the process's number to, once signals are noticed")
	set.StringVar(&c.until, "until", "", "go on until there is such a `file`")
	set.BoolVar(&c.hang, "hang", false, "go on until a signal")
	set.IntVar(&c.trap, "trap", -1, "end with this `status` at a signal")
	set.BoolVar(&c.ignore, "ignore", false, "go on at a signal")
	set.IntVar(&c.exit, "exit", 0, "end with this `status`")
	set.StringVar(&c.die, "die", "", "end by this `signal` to itself")
	set.StringVar(&c.print, "print", "", "print these `variables`")
	set.StringVar(&c.with, "with", "", "start a second one, whose number goes to this `file`, and end after it")
	set.BoolVar(&c.setsid, "setsid", false, "the second is in a session of its own")
	set.BoolVar(&c.leave, "leave", false, "end at once, and leave the second behind")
	set.StringVar(&c.beat, "beat", "", "write the time to this `file`, over and over")
}

// lifetime ends a child that a script has forgotten.
const lifetime = 2 * session.Limit

// childMain is the main function of a child.
func childMain() {
	var c child
	set := flag.NewFlagSet("child", flag.ExitOnError)
	c.flags(set)
	_ = set.Parse(os.Args[1:])
	signals := make(chan os.Signal, 16)
	if c.trap >= 0 || c.ignore {
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGCONT,
			syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	}
	if c.beat != "" {
		go beats(c.beat)
	}
	c.note("start")
	for name := range strings.SplitSeq(c.print, ",") {
		if value, ok := os.LookupEnv(name); ok {
			fmt.Printf("%s=%s\n", name, value)
		}
	}
	second := c.second()
	appear(c.started, strconv.Itoa(os.Getpid()))
	code := c.exit
	if !c.leave || second == nil {
		code = c.wait(signals)
	}
	if second != nil && !c.leave {
		_ = second.Wait()
	}
	c.note("end")
	if c.die != "" {
		_ = syscall.Kill(os.Getpid(), unix.SignalNum("SIG"+c.die))
		select {}
	}
	os.Exit(code)
}

// wait waits for the child's end, and returns the exit status.
func (c *child) wait(signals <-chan os.Signal) int {
	if c.until == "" && !c.hang {
		return c.exit
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(lifetime)
	for {
		select {
		case s := <-signals:
			c.note(unix.SignalName(s.(syscall.Signal)))
			if c.trap >= 0 && s != syscall.SIGCONT {
				return c.trap
			}
		case <-tick.C:
			if _, err := os.Stat(c.until); c.until != "" && err == nil {
				return c.exit
			}
		case <-end:
			c.note("forgotten")
			return 99
		}
	}
}

// second starts another child, which does the same or goes on for ever.
func (c *child) second() *exec.Cmd {
	if c.with == "" {
		return nil
	}
	args := []string{"-name", c.name + ".2", "-log", c.log, "-started", c.with, "-trap", strconv.Itoa(c.trap)}
	args = append(args, "-until", c.until, fmt.Sprintf("-hang=%t", c.hang || c.leave), fmt.Sprintf("-ignore=%t", c.ignore))
	cmd := exec.Command(os.Args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: c.setsid}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if session.Eventually("", func() bool { _, err := os.Stat(c.with); return err == nil }) != nil {
		panic("the second does not start")
	}
	return cmd
}

// note adds a line with one write, so that lines of several processes do not mix.
func (c *child) note(event string) {
	if c.log == "" {
		return
	}
	file, err := os.OpenFile(c.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	_, _ = fmt.Fprintf(file, "%s %s %s\n", time.Now().UTC().Format("15:04:05.000000"), c.name, event)
}

// appear makes the file appear with its whole content.
func appear(name, text string) {
	if name == "" {
		return
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".child")
	if err == nil {
		_, _ = file.WriteString(text)
		_ = file.Close()
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		panic(err)
	}
}

const beatSize = 8

// beats writes the time into memory that is mapped to a file. The last time stays in the file
// however the process ends.
func beats(name string) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Truncate(beatSize)
	}
	var page []byte
	if err == nil {
		page, err = unix.Mmap(int(file.Fd()), 0, beatSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		panic(err)
	}
	at := (*int64)(unsafe.Pointer(&page[0]))
	for {
		atomic.StoreInt64(at, time.Now().UnixNano())
		pause := unix.NsecToTimeval(int64(20 * time.Microsecond)) // others need the processor too
		_, _ = unix.Select(0, nil, nil, nil, &pause)
	}
}

// lastBeat returns the last time that beats wrote.
func lastBeat(name string) (time.Time, error) {
	page, err := os.ReadFile(name)
	if err != nil || len(page) < beatSize {
		return time.Time{}, fmt.Errorf("no beat in %s: %w", name, err)
	}
	return time.Unix(0, int64(binary.NativeEndian.Uint64(page))), nil
}

func init() { programs["child"] = childMain }
