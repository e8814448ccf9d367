//go:build race

package sim

import "testing"

// slowWithRace skips a test of what the lab finds, not of how its goroutines meet: under
// the race detector it takes six times as long. CI runs it without the detector.
func slowWithRace(t *testing.T) { t.Skip("it takes minutes under the race detector") }
