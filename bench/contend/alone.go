package contend

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/redlock/bench/subject"
)

// What a subject is measured alone for: so long, and at least so many cycles, of
// which the first few do not count.
const (
	aloneFor   = 80 * time.Millisecond
	aloneLeast = 15
	aloneWarm  = 3
)

// Alone is the median of what acquiring and releasing the key takes a caller while
// nobody else wants it. What fails is not counted.
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
