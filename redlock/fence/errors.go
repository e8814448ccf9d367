package fence

import (
	"context"
	"errors"
	"fmt"
)

// ErrStaleToken: the resource has seen a higher token, so the lock has been taken
// over since this holder got it. It arrives inside a *[StaleError]. The holder must
// not try again with the same token: tokens that a resource has seen only grow.
var ErrStaleToken = errors.New("fence: stale token")

// StaleError tells which token was refused, and because of which.
type StaleError struct {
	Resource string // the resource, or the Redis key
	Token    int64  // the one refused
	Highest  int64  // the one that the resource has seen; 0 if that is not known
}

func (e *StaleError) Error() string {
	if e.Highest == 0 {
		return fmt.Sprintf("%v: %q refuses %d", ErrStaleToken, short(e.Resource), e.Token)
	}
	return fmt.Sprintf("%v: %q refuses %d after %d", ErrStaleToken, short(e.Resource), e.Token, e.Highest)
}

// Unwrap gives [ErrStaleToken].
func (e *StaleError) Unwrap() error { return ErrStaleToken }

// failed says what failed on what. Drivers report a context that ended without its
// cause, which is what tells a lost lock from a caller that gave up.
func failed(ctx context.Context, op, name string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("fence: %s %q: %w (%w)", op, short(name), err, cause)
	}
	return fmt.Errorf("fence: %s %q: %w", op, short(name), err)
}

// short is a name for a message: a key may be a megabyte.
func short(name string) string {
	const enough = 100
	if len(name) <= enough {
		return name
	}
	return name[:enough] + "…"
}
