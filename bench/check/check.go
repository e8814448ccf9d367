// Package check makes sure that what is compared locks: a subject that does
// nothing would win.
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

// Locks takes a subject through one lock on the first masters, as many as addrs,
// which are their addresses or those of links to them. While one client holds
// the key, a majority of where its locks live must have it, with a ttl, from the
// moment on at which the acquisition returns; a second client must be refused,
// for that reason; and after the release nothing may be left but what is to stay, a
// majority must have that, and the key can be acquired again. Other keys are deleted
// before, and all of them afterwards. Masters that are too young for the subject's
// guard are waited for.
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

// free makes sure that no master has a key any more, but for those that are to stay.
// Of a subject whose way it is to leave some, they are deleted.
func free(ctx context.Context, set *masters.Set, spec subject.Spec) error {
	err := set.AwaitOnly(ctx, spec.Stays, spec.Patience())
	if errors.Is(err, masters.ErrLeft) && spec.LeavesStragglers {
		return set.Flush(ctx)
	}
	return err
}

// stayed makes sure that a majority has what is to stay.
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

// held looks at the masters themselves.
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

// noKey is what go-redis makes of Redis's -2.
const noKey = -2 * time.Nanosecond

// refused tries to acquire what is held, as another client of the same library.
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
