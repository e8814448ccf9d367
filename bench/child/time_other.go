//go:build !unix

package child

import "time"

// ProcessorTime returns 0: it is not measured on this system.
func ProcessorTime() time.Duration { return 0 }
