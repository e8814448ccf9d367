//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// Resized returns a channel that receives when the terminal gets another size, until stop is called.
func Resized() (resized <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
