package sqltest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/fence"
)

// duel is two transactions on one resource that are open at the same time. When the second
// begins, the first has checked and written, and may have been paused.
type duel struct {
	before        int64 // the token stored before; 0 if there is none
	first, second int64 // the tokens of the two transactions
	rollback      bool  // the first rolls back instead of committing
	looked        bool  // the second has a snapshot from before the first one's end
}

// TestTwoHolders tests the central promise. An older holder has checked and commits late, or a
// newer one is committing while an older one checks. The second transaction waits, or is asked
// to try again, and is judged by what the first has committed.
func TestTwoHolders(t *testing.T) {
	each(t, func(s *store) {
		for _, before := range []int64{0, 5} {
			for _, second := range []int64{6, 7, 8} {
				for _, rollback := range []bool{false, true} {
					for _, looked := range []bool{false, true} {
						s.fight(duel{before, 7, second, rollback, looked})
					}
				}
			}
		}
	})
}

func (s *store) fight(d duel) {
	s.Helper()
	name := fmt.Sprintf("%+v", d)
	var want []int64
	if d.before > 0 {
		require.NoError(s, s.try(name, d.before), name)
		want = append(want, d.before)
	}
	one := s.begin(name, d.first)
	require.NoError(s, one.check(), name)
	require.NoError(s, one.write(), name)

	end := func() {
		s.Helper()
		if d.rollback {
			one.rollback()
			return
		}
		require.NoError(s, one.finish(nil), name) // writes once more
		want = append(want, d.first, d.first)
	}
	two, err := s.holder(name, d.second)
	if err == nil && d.looked {
		require.NoError(s, two.look(), name)
	}
	if s.engine.id != "" {
		require.NoError(s, err, name)
		said := make(chan error, 1)
		go func() { said <- two.check() }()
		s.awaitWait(two)
		require.Empty(s, said, "%s: the second did not wait", name)
		end()
		err = two.finish(<-said)
		if s.orderly {
			require.False(s, err != nil && s.engine.again(err), "%s: %v", name, err)
		}
	} else {
		if err == nil {
			err = two.check()
			two.rollback()
		}
		require.True(s, err != nil && s.engine.again(err), "%s: %v", name, err)
		end()
	}
	if err != nil && s.engine.again(err) {
		err = s.try(name, d.second)
	}
	if d.second < d.first && !d.rollback {
		s.refused(err, d.second, d.first)
		require.Equal(s, d.first, s.stored(name), name)
	} else {
		require.NoError(s, err, name)
		require.Equal(s, d.second, s.stored(name), name)
		want = append(want, d.second)
	}
	require.Equal(s, want, s.written(name), name)
}

// A transaction that has read before its check has an old snapshot, in which the newer token
// does not exist.
func TestSnapshotFromBeforeTheNewerHolder(t *testing.T) {
	each(t, func(s *store) {
		require.NoError(s, s.try("r", 5))
		old := s.begin("r", 7)
		require.NoError(s, old.look())
		newer, err := s.holder("r", 9)
		if err == nil {
			err = newer.finish(newer.check())
		}
		if err != nil {
			require.True(s, s.engine == &sqlite && s.engine.again(err), "%v", err)
			require.NoError(s, old.finish(old.check()), "it had the database for itself")
			require.Equal(s, []int64{5, 7}, s.written("r"))
			return
		}
		err = old.finish(old.check())
		require.Error(s, err)
		if !s.engine.again(err) {
			s.refused(err, 7, 9)
		}
		s.refused(s.try("r", 7), 7, 9)
		require.Equal(s, []int64{5, 9}, s.written("r"))
	})
}

// Many first writes of one resource wait for one that is rolled back. Its remains may cause a
// deadlock among them, which is an error, but never a wrong order.
func TestFirstWritesAfterARollback(t *testing.T) {
	eachThatWaits(t, func(s *store) {
		nobody := s.begin("r", 9)
		require.NoError(s, nobody.check())
		var g sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			h := s.begin("r", int64(i+1))
			g.Go(func() {
				errs[i] = h.finish(h.check())
				if errs[i] != nil && s.engine.again(errs[i]) {
					errs[i] = s.try("r", h.token)
				}
			})
			s.awaitWait(h)
		}
		nobody.rollback()
		g.Wait()
		require.Equal(s, int64(5), s.stored("r"))
		tokens := s.written("r")
		require.IsNonDecreasing(s, tokens)
		for i, err := range errs {
			if err != nil {
				require.ErrorIs(s, err, fence.ErrStaleToken)
			}
			require.Equal(s, err == nil, slices.Contains(tokens, int64(i+1)), "token %d: %v in %v", i+1, err, tokens)
		}
	})
}
