//go:build race

package sim

import "testing"

// slowWithRace skips a test that is about the findings of the lab and not about the
// interleaving of its goroutines: under the race detector it takes six times as long. CI
// runs it without the detector.
func slowWithRace(t *testing.T) { t.Skip("it takes minutes under the race detector") }
