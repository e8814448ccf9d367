//go:build race

package redlock_test

import "testing"

// crowded skips a test under the race detector, whose stacks of a bubble with very many
// timers and goroutines grow until it crashes (Go 1.26). CI runs them without it too.
func crowded(t *testing.T) { t.Skip("the race detector does not survive it") }
