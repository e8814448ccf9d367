package gocronlock_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/integration/gocronlock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/election"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

const name = "leader:scheduler"

// candidate is an instance that takes part in an election.
type candidate struct {
	*gocronlock.Elector
	stop  context.CancelFunc
	ended chan error
}

func newCandidate(t *testing.T, masters *redlocktest.Masters) candidate {
	t.Helper()
	elector, err := gocronlock.NewElector(newLocks(t, masters), name, ttl)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	c := candidate{elector, stop, make(chan error, 1)}
	go func() { c.ended <- elector.Run(ctx) }()
	t.Cleanup(stop) // the Redlock is closed after this
	synctest.Wait()
	return c
}

// One of three instances runs all jobs. The next one follows when it stops.
func TestElectorLetsTheLeaderRunJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		var ran [3]atomic.Int32
		var candidates []candidate
		first := time.Now().Add(time.Minute)
		for i := range ran {
			c := newCandidate(t, masters)
			candidates = append(candidates, c)
			schedule(t, gocron.WithDistributedElector(c), first, key,
				c.Task(func(context.Context) error { ran[i].Add(1); return nil }))
		}
		counts := func() (all []int32) {
			for i := range ran {
				all = append(all, ran[i].Swap(0))
			}
			return all
		}
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []int32{1, 0, 0}, counts())
		candidates[0].stop()
		assert.NoError(t, <-candidates[0].ended)
		time.Sleep(5 * time.Minute)
		next := counts()
		slices.Sort(next[1:])
		assert.Equal(t, []int32{0, 0, 1}, next)
	})
}

// The context of a task ends when its term is lost, and its job has failed. Then another instance
// leads, and this one no more.
func TestElectorTaskLearnsOfALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		leader, other := newCandidate(t, masters), newCandidate(t, masters)
		require.NoError(t, leader.IsLeader(t.Context()))
		require.ErrorIs(t, other.IsLeader(t.Context()), election.ErrNotLeader)
		told, failed := make(chan error, 1), make(chan error, 1)
		schedule(t, gocron.WithDistributedElector(leader), time.Now().Add(time.Second), key,
			leader.Task(func(ctx context.Context) error {
				_, carried := redlock.FromContext(ctx, name)
				assert.True(t, carried)
				forget(masters)
				<-ctx.Done()
				told <- context.Cause(ctx)
				return nil
			}),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
		assert.ErrorIs(t, <-told, redlock.ErrNotHeld)
		assert.ErrorIs(t, <-failed, redlock.ErrNotHeld)
		assert.ErrorIs(t, leader.IsLeader(t.Context()), election.ErrNotLeader)
		time.Sleep(4 * ttl) // the second one waits in a queue that was forgotten too
		assert.NoError(t, other.IsLeader(t.Context()))
	})
}

// When a leader stops, the contexts of its tasks end, and the next one leads after they have
// returned. A task that returns nil has not failed.
func TestElectorReleasesAfterItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		leader, other := newCandidate(t, masters), newCandidate(t, masters)
		began, failed := make(chan bool), make(chan error, 1)
		var tidying sync.Mutex
		schedule(t, gocron.WithDistributedElector(leader), time.Now().Add(time.Second), key,
			leader.Task(func(ctx context.Context) error {
				tidying.Lock()
				defer tidying.Unlock()
				close(began)
				<-ctx.Done()
				time.Sleep(3 * ttl)
				assert.Error(t, other.IsLeader(t.Context()), "two leaders")
				return nil
			}),
			gocron.AfterJobRuns(func(uuid.UUID, string) { failed <- nil }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
		<-began
		leader.stop()
		assert.NoError(t, <-leader.ended)
		assert.True(t, tidying.TryLock(), "Run has returned before its task")
		assert.NoError(t, <-failed)
		synctest.Wait()
		time.Sleep(time.Second)
		assert.NoError(t, other.IsLeader(t.Context()))
	})
}

// gocron may have asked IsLeader just before the term has ended.
func TestElectorTaskOfAnotherInstanceDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		masters := redlocktest.StartVirtual(t, 3)
		leader, other := newCandidate(t, masters), newCandidate(t, masters)
		failed := make(chan error, 1)
		schedule(t, gocron.WithDistributedElector(leader), time.Now().Add(time.Second), key,
			other.Task(func(context.Context) error { t.Error("it ran"); return nil }),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { failed <- err }))
		assert.ErrorIs(t, <-failed, election.ErrNotLeader)
	})
}

func TestElectorMistakesAreErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := newLocks(t, redlocktest.StartVirtual(t, 3))
		for want, args := range map[string]struct {
			locks *redlock.Redlock
			name  string
			ttl   time.Duration
		}{
			"gocronlock: locks is nil":          {nil, name, ttl},
			"gocronlock: redlock: key is empty": {locks, "", ttl},
			"gocronlock: redlock: ttl 1ms":      {locks, name, time.Millisecond},
		} {
			_, err := gocronlock.NewElector(args.locks, args.name, args.ttl)
			assert.ErrorContains(t, err, want)
		}
		elector, err := gocronlock.NewElector(locks, name, ttl)
		require.NoError(t, err)
		assert.ErrorIs(t, elector.IsLeader(t.Context()), election.ErrNotLeader)
		var none context.Context
		assert.ErrorContains(t, elector.Run(none), "ctx is nil")
		require.NoError(t, locks.Close())
		assert.ErrorIs(t, elector.Run(t.Context()), redlock.ErrClosed)
		s, err := gocron.NewScheduler()
		require.NoError(t, err)
		defer s.Shutdown()
		_, err = s.NewJob(gocron.DurationJob(time.Minute), elector.Task(nil))
		assert.ErrorIs(t, err, gocron.ErrNewJobTaskNotFunc)
	})
}
