//go:build unix

package leash

import (
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is ours until the group wants it, by reading from it or changing it. Until then
// ^C reaches us, as well as who is in a pipeline or a script with us, and we pass it on;
// afterwards it reaches the group alone.
type terminal struct {
	fd    int // of /dev/tty; 0: not open
	lent  bool
	state *term.State // as it was when it was lent
}

// Foreground reports whether we are in the foreground of a terminal.
func Foreground() bool {
	var t terminal
	defer t.close()
	return t.ours()
}

// EndOf ends us of a signal, if we are in the foreground of a terminal: a shell's loop and a
// script end with ^C only if what they have run has ended of it. Elsewhere it does nothing.
func EndOf(s syscall.Signal) {
	if Foreground() {
		raise(s, false)
	}
}

func (t *terminal) ours() bool {
	if t.fd == 0 {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		t.fd = fd
	}
	at, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && at == syscall.Getpgrp()
}

// borrowed reports whether the group has the terminal: it wanted it just before it got it.
func (g *group) borrowed() bool {
	if !g.lent {
		return false
	}
	at, err := unix.IoctlGetInt(g.fd, unix.TIOCGPGRP)
	return err == nil && at == g.id
}

// lend gives the terminal to the group, and reports whether it was ours to give.
func (g *group) lend() bool {
	if !g.ours() {
		return false
	}
	if g.state == nil {
		g.state, _ = term.GetState(g.fd)
	}
	g.lent = unix.IoctlSetPointerInt(g.fd, unix.TIOCSPGRP, g.id) == nil
	return g.lent
}

// takeBack reports whether the terminal was lent. Who was killed with it cannot have put it
// back as it was. SIGTTOU, by which others are stopped who do this, is ignored by now.
func (t *terminal) takeBack(killed bool) (lent bool) {
	if lent = t.lent; lent {
		t.lent = false
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, syscall.Getpgrp())
		if killed && t.state != nil {
			_ = term.Restore(t.fd, t.state)
		}
	}
	return lent
}

func (t *terminal) close() {
	if t.fd != 0 {
		_ = unix.Close(t.fd)
	}
}
