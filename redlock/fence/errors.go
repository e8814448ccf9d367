package fence

import (
	"context"
	"errors"
	"fmt"
)

// ErrStaleToken reports that the resource has seen a higher token: the lock was granted
// again after this holder got it. It is wrapped in a *[StaleError]. The holder must not try
// again with the same token, as the highest token that a resource has seen only grows.
var ErrStaleToken = errors.New("fence: stale token")

// StaleError reports a refused token, and the higher token that the resource has seen.
type StaleError struct {
	Resource string // the resource, or the Redis key
	Token    int64  // the token that was refused
	Highest  int64  // the highest token that the resource has seen; 0 if it is not known
}

func (e *StaleError) Error() string {
	if e.Highest == 0 {
		return fmt.Sprintf("%v: %q refuses %d", ErrStaleToken, short(e.Resource), e.Token)
	}
	return fmt.Sprintf("%v: %q refuses %d after %d", ErrStaleToken, short(e.Resource), e.Token, e.Highest)
}

// Unwrap returns [ErrStaleToken].
func (e *StaleError) Unwrap() error { return ErrStaleToken }

// failed wraps the error of an operation on a resource or key. Drivers report that a context
// has ended without its cause, so failed adds the cause: it distinguishes a lost lock from a
// caller that gave up.
func failed(ctx context.Context, op, name string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("fence: %s %q: %w (%w)", op, short(name), err, cause)
	}
	return fmt.Errorf("fence: %s %q: %w", op, short(name), err)
}

// short shortens a name for a message, as a key may have a megabyte.
func short(name string) string {
	const enough = 100
	if len(name) <= enough {
		return name
	}
	return name[:enough] + "…"
}
