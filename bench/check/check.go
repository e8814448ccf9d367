// Package check checks that the subjects of a comparison lock: a subject that does nothing
// would win.
package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/subject"
)

const key = "check:0000:00000"

// Locks takes a subject through one lock on the first masters. addrs are the addresses of
// these masters, or of links to them. It checks that
//
//   - while a client holds the key, a majority of the places where the subject stores it have
//     it, with a ttl, as soon as the acquisition returns;
//   - a second client is refused meanwhile, because the key is held;
//   - after the release nothing is left but the keys that are to stay, and a majority has those;
//   - the key can be acquired again.
//
// It deletes all keys before and afterwards. It waits until the masters are old enough for the
// subject's guard.
func Locks(ctx context.Context, set *masters.Set, spec subject.Spec, addrs []string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s on %d masters: %w", spec.Name, len(addrs), err)
		}
	}()
	if err := set.Flush(ctx); err != nil {
		return err
	}
	if err := set.AwaitUptime(ctx, spec.Uptime()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Flush(ctx)) }()
	first, err := spec.Open(subject.Target{Addrs: addrs, Callers: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	holder := first.Caller()
	if err := holder.Acquire(ctx, key); err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	if err := held(ctx, set, spec, len(addrs)); err != nil {
		return err
	}
	if err := refused(ctx, spec, addrs); err != nil {
		return err
	}
	if err := held(ctx, set, spec, len(addrs)); err != nil {
		return fmt.Errorf("after another client was refused: %w", err)
	}
	if err := holder.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if err := free(ctx, set, spec); err != nil {
		return fmt.Errorf("after the release: %w", err)
	}
	if err := stayed(ctx, set, spec, len(addrs)); err != nil {
		return err
	}
	if err := holder.Acquire(ctx, key); err != nil {
		return fmt.Errorf("acquire after a release: %w", err)
	}
	if err := holder.Release(ctx); err != nil {
		return fmt.Errorf("second release: %w", err)
	}
	return free(ctx, set, spec)
}

// free checks that no master has a key, except for those that are to stay. If the subject
// leaves stragglers by design, free deletes them.
func free(ctx context.Context, set *masters.Set, spec subject.Spec) error {
	err := set.AwaitOnly(ctx, spec.Stays, spec.Patience())
	if errors.Is(err, masters.ErrLeft) && spec.LeavesStragglers {
		return set.Flush(ctx)
	}
	return err
}

// stayed checks that a majority has the keys that are to stay.
func stayed(ctx context.Context, set *masters.Set, spec subject.Spec, n int) error {
	for _, prefix := range spec.Stays {
		has := 0
		for i := range n {
			keys, err := set.Client(i).Keys(ctx, prefix+"*").Result()
			if err != nil {
				return err
			}
			if len(keys) > 0 {
				has++
			}
		}
		if has < n/2+1 {
			return fmt.Errorf("%d of %d masters have kept a key that begins with %s, no majority", has, n, prefix)
		}
	}
	return nil
}

// held checks on the masters themselves that a majority has the key.
func held(ctx context.Context, set *masters.Set, spec subject.Spec, n int) error {
	if spec.OneMaster {
		n = 1
	}
	names := spec.Keys(key)
	has, places := 0, n*len(names)
	for i := range n {
		for _, name := range names {
			left, err := set.Client(i).PTTL(ctx, name).Result()
			if err != nil {
				return err
			}
			if left > 0 && left <= spec.LockTTL() {
				has++
			} else if left != noKey {
				return fmt.Errorf("%s has a ttl of %v, want up to %v", name, left, spec.LockTTL())
			}
		}
	}
	if has < places/2+1 {
		return fmt.Errorf("%d of %d places have the lock that was acquired, no majority", has, places)
	}
	return nil
}

// noKey is go-redis's value for Redis's -2.
const noKey = -2 * time.Nanosecond

// refused tries to acquire the held key as another client of the same library.
func refused(ctx context.Context, spec subject.Spec, addrs []string) (err error) {
	other, err := spec.Open(subject.Target{Addrs: addrs, Callers: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	switch err := other.Caller().Acquire(ctx, key); {
	case err == nil:
		return errors.New("two clients have acquired one key")
	case !spec.Refused(err):
		return fmt.Errorf("the second client was refused for another reason: %w", err)
	}
	return nil
}
