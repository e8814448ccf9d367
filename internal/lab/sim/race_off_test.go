//go:build !race

package sim

import "testing"

func slowWithRace(*testing.T) {}
