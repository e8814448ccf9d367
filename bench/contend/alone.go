package contend

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/subject"
)

// A subject is measured alone for at least aloneFor and aloneLeast cycles, after aloneWarm
// cycles that do not count.
const (
	aloneFor   = 80 * time.Millisecond
	aloneLeast = 15
	aloneWarm  = 3
)

// Alone returns the median time to acquire and release the key while no other caller wants it.
// Cycles that fail do not count.
func Alone(ctx context.Context, c subject.Caller, key string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	var took []time.Duration
	for begin := time.Now(); len(took) < aloneWarm+aloneLeast || time.Since(begin) < aloneFor; {
		start := time.Now()
		switch err := cycle(ctx, c, key); {
		case err == nil:
			took = append(took, time.Since(start))
		case ctx.Err() != nil:
			return 0, fmt.Errorf("alone: %w", err)
		default:
			Pause(ctx, 10*time.Millisecond)
		}
	}
	took = took[aloneWarm:]
	slices.Sort(took)
	return Quantile(took, 0.5), nil
}
