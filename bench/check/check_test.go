package check

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/masters"
	"github.com/quorumlock/redlock/bench/subject"
)

func TestEverySubjectLocks(t *testing.T) {
	subject.Quiet()
	set := masters.Start(t, 5)
	for _, spec := range subject.All() {
		for _, n := range []int{1, 3, 5} {
			assert.NoError(t, Locks(t.Context(), set, spec, set.Addrs(n)))
		}
	}
}

// Subjects that are measured with a guard count no votes of masters that have just started.
func TestTheGuardIsOn(t *testing.T) {
	guarded := 0
	for _, spec := range subject.All() {
		if spec.Guard == 0 {
			continue
		}
		guarded++
		set := masters.Start(t, 5)
		l, err := spec.Open(subject.Target{Addrs: set.Addrs(5), Callers: 1})
		require.NoError(t, err)
		assert.ErrorContains(t, l.Caller().Acquire(t.Context(), key), "quarantined", spec.Name)
		require.NoError(t, l.Close())
	}
	assert.Equal(t, 2, guarded)
}

// fake is a subject that does not lock properly.
type fake struct {
	set     *masters.Set
	on      int  // acquires by SET on so many masters
	nx      bool // sets only a free key
	forever bool // without a ttl
	keep    bool // does not release
	stays   bool // claims that a key of its own outlives the lock
	fence   int  // leaves such a key on so many masters
}

func (f fake) Caller() subject.Caller { return f }
func (f fake) Close() error           { return nil }

func (f fake) Acquire(ctx context.Context, key string) error {
	ttl := subject.TTL
	if f.forever {
		ttl = 0
	}
	for i := range f.on {
		c := f.set.Client(i)
		if !f.nx {
			if err := c.Set(ctx, key, "fake", ttl).Err(); err != nil {
				return err
			}
			continue
		}
		ok, err := c.SetNX(ctx, key, "fake", ttl).Result()
		if err != nil {
			return err
		}
		if !ok {
			return subject.ErrHeld
		}
	}
	return nil
}

func (f fake) Release(ctx context.Context) error {
	for i := range f.fence {
		if err := f.set.Client(i).Set(ctx, "fence:"+key, 1, time.Hour).Err(); err != nil {
			return err
		}
	}
	for i := range f.on {
		if f.keep {
			break
		}
		if err := f.set.Client(i).Del(ctx, key).Err(); err != nil {
			return err
		}
	}
	return nil
}

func TestWhatDoesNotLockIsFound(t *testing.T) {
	set := masters.Start(t, 5)
	for name, c := range map[string]struct {
		fake fake
		want string // in the error; empty: it locks
	}{
		"does nothing":     {fake{}, "no majority"},
		"on a minority":    {fake{on: 2, nx: true}, "no majority"},
		"excludes nobody":  {fake{on: 5}, "two clients"},
		"without a ttl":    {fake{on: 5, nx: true, forever: true}, "has a ttl of"},
		"does not release": {fake{on: 5, nx: true, keep: true}, "keys are left"},
		"leaves no fence":  {fake{on: 5, nx: true, stays: true, fence: 2}, "2 of 5 masters have kept"},
		"locks":            {fake{on: 5, nx: true}, ""},
		"locks and fences": {fake{on: 5, nx: true, stays: true, fence: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.fake.set = set
			spec := subject.Spec{
				Name:    "fake",
				Open:    func(subject.Target) (subject.Locker, error) { return c.fake, nil },
				Keys:    func(key string) []string { return []string{key} },
				Refused: func(err error) bool { return err == subject.ErrHeld },
			}
			if c.fake.stays {
				spec.Stays = []string{"fence:"}
			}
			err := Locks(t.Context(), set, spec, set.Addrs(5))
			assert.NoError(t, set.AwaitEmpty(t.Context(), 0), "all is deleted")
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, c.want)
		})
	}
}
