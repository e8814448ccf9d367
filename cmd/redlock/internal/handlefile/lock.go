package handlefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/masterlist"
	"github.com/quorumlock/redlock/redlock"
)

// Flags are the flags of a command that goes on with the lock of a handle.
type Flags struct {
	masterlist.Flags
	File  string
	Guard cli.Duration
	set   *pflag.FlagSet
}

// Register adds the flags to those of a command.
func (f *Flags) Register(set *pflag.FlagSet) {
	f.set = set
	f.Flags.Register(set)
	set.StringVar(&f.File, "handle-file", "", "the file with the handle, as acquire has\nwritten it; - is stdin")
	set.Var(&f.Guard, "restart-guard", "the longest ttl in use on these masters: those\nthat may have forgotten locks do not vote\n(default off)")
	set.Lookup("restart-guard").DefValue = ""
}

// Resume reads the handle and extends its lock by ttl, which must be positive; ttl gets the one that
// was last asked for. The masters' keys have the prefix, and the lock the kind of token, that the
// handle says. The caller must Leave the Redlock if the error is nil.
func (f *Flags) Resume(ctx context.Context, stdin io.Reader, ttl func(last time.Duration) time.Duration) (*redlock.Redlock, *redlock.Lock, error) {
	if f.File != "" {
		file, err := Resolve(f.File)
		if err != nil {
			return nil, nil, err
		}
		f.File = file
	}
	h, err := Read(ctx, f.File, stdin, f.Warn)
	if err != nil {
		return nil, nil, err
	}
	if f.set.Changed("prefix") && f.Prefix != h.KeyPrefix {
		return nil, nil, cli.Usagef("--prefix is %q, but the lock has another one; the handle says which, so the flag is not needed", f.Prefix)
	}
	f.Prefix = h.KeyPrefix
	wanted := ttl(h.TTL)
	locks, err := f.Open(ctx, redlock.Config{
		NodeTimeout:  min(masterlist.NodeTimeout, wanted/4),
		Fencing:      h.FencingToken != 0,
		RestartGuard: time.Duration(f.Guard),
	})
	if err != nil {
		return nil, nil, err
	}
	lock, err := locks.Resume(ctx, h.Text, wanted)
	if err != nil {
		masterlist.Leave(locks)
		return nil, nil, refused(ctx, h.Key, err)
	}
	return locks, lock, nil
}

// refused returns the error of a lock that could not be resumed, with its exit status.
func refused(ctx context.Context, key string, err error) error {
	var quorum *redlock.QuorumError
	switch {
	case errors.Is(err, redlock.ErrNotHeld):
		return NotHeld(key)
	case ctx.Err() != nil: // a signal
		return err
	case errors.As(err, &quorum):
		return &cli.ExitError{Code: cli.ExitNoQuorum, Err: err}
	}
	return &cli.UsageError{Err: err} // an argument is wrong; no master was asked
}

// NotHeld returns the error of a handle whose lock is gone.
func NotHeld(key string) error {
	return &cli.ExitError{Code: cli.ExitLost, Err: fmt.Errorf("lock %q is not held any more: it was released, or has expired", key)}
}
