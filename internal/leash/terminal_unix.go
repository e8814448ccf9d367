//go:build unix

package leash

import (
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is our controlling terminal. We keep it until the group reads from it or changes its
// modes. Until then ^C reaches us, and the other processes of our pipeline or script, and we pass
// it on. After that it reaches the group alone.
type terminal struct {
	fd    int         // the descriptor of /dev/tty; 0 if it is not open
	lent  bool        // the group has the terminal
	state *term.State // the modes before the terminal was first lent; nil before that
}

// Foreground reports whether we are in the foreground of a terminal.
func Foreground() bool {
	var t terminal
	defer t.close()
	return t.ours()
}

// EndOf ends us with a signal if we are in the foreground of a terminal, and does nothing
// otherwise. A shell ends a loop or a script on ^C only if the program that it runs was ended by
// that signal.
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

// borrowed reports whether the group already has the terminal. If so, its use of the terminal
// stopped it just before it got the terminal.
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

// takeBack takes the terminal back, and reports whether it was lent. It restores the modes if the
// command was killed, as the command could not do so itself. A background process that takes the
// terminal gets SIGTTOU, which we ignore by now.
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
