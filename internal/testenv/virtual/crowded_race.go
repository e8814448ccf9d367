//go:build race

package virtual

import "testing"

// Crowded skips a test under the race detector, whose stacks of a bubble with very many
// timers and goroutines grow until it crashes (Go 1.26). CI runs such tests without it too.
func Crowded(t *testing.T) { t.Skip("the race detector does not survive it") }
