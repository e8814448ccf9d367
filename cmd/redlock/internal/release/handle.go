package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/handlefile"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

// proof is how long the lock of a handle lasts at least if its release is interrupted: the release
// begins with an extension, which proves that the lock is held.
const proof = 10 * time.Second

// Released is the object of --json.
type Released struct {
	Key string `json:"key"`
}

// byHandle releases the lock of a handle. It removes the file once there is nothing left to release.
func (f *flags) byHandle(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	key, err := f.release(ctx, stdin)
	gone := (*cli.ExitError)(nil)
	if f.File != handlefile.Stdin && (err == nil || errors.As(err, &gone) && gone.Code == cli.ExitLost) {
		if failed := os.Remove(f.File); failed != nil && err == nil {
			return fmt.Errorf("the lock was released, but its handle stays: %w", failed)
		}
	}
	if err == nil && f.json {
		err = cli.PrintJSON(stdout, Released{key})
	}
	return err
}

func (f *flags) release(ctx context.Context, stdin io.Reader) (key string, err error) {
	locks, lock, err := f.Resume(ctx, stdin, func(last time.Duration) time.Duration { return min(last, proof) })
	if err != nil {
		return "", err
	}
	defer masterlist.Leave(locks)
	err = lock.Release(ctx)
	switch {
	case err == nil:
		return lock.Key(), nil
	case errors.Is(err, redlock.ErrNotHeld), errors.Is(err, redlock.ErrExpired):
		return "", handlefile.NotHeld(lock.Key())
	}
	return "", &cli.ExitError{Code: cli.ExitNoQuorum, Err: err}
}
