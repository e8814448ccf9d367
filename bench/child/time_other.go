//go:build !unix

package child

import "time"

// ProcessorTime is not measured here.
func ProcessorTime() time.Duration { return 0 }
