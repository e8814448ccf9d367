//go:build !unix

package terminal

import "os"

// Resized returns a channel that never receives: no signal says so here.
func Resized() (resized <-chan os.Signal, stop func()) { return nil, func() {} }
