package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock/fence"
)

// refused requires that err reports token as refused, with highest as the highest token seen.
func (s *store) refused(err error, token, highest int64) {
	s.Helper()
	require.ErrorIs(s, err, fence.ErrStaleToken)
	var stale *fence.StaleError
	require.ErrorAs(s, err, &stale)
	require.Equal(s, [2]int64{token, highest}, [2]int64{stale.Token, stale.Highest})
}

// first is a realistic token: microseconds, with 16 digits. The tests use tokens one apart.
const first = int64(1790000000000000)

func TestOlderTokenIsRefused(t *testing.T) {
	each(t, func(s *store) {
		require.NoError(s, s.try("r", first))
		require.NoError(s, s.try("r", first), "an equal token passes")
		s.refused(s.try("r", first-1), first-1, first)
		s.refused(s.try("r", 1), 1, first)
		require.Equal(s, first, s.stored("r"), "as it was")
		require.NoError(s, s.try("r", first+1))
		s.refused(s.try("r", first), first, first+1)
		require.NoError(s, s.try("other", 1), "another resource")
		require.NoError(s, s.try("r", 1<<53-1))
		require.Equal(s, []int64{first, first, first + 1, 1<<53 - 1}, s.written("r"))

		// One holder writes several times in one transaction.
		h := s.begin("other", 2)
		for range 3 {
			require.NoError(s, h.check())
			require.NoError(s, h.write())
		}
		h.token = 1
		s.refused(h.check(), 1, 2)
		h.rollback()
		require.Equal(s, []int64{1}, s.written("other"))
		require.Equal(s, int64(1), s.stored("other"))
	})
}

// Without the table nothing passes: Check returns the database's own error.
func TestWithoutATableNothingPasses(t *testing.T) {
	each(t, func(s *store) {
		s.exec("DROP TABLE " + s.fence)
		h := s.begin("r", 1)
		err := h.check()
		require.ErrorContains(s, err, `fence: check "r": `)
		require.NotErrorIs(s, err, fence.ErrStaleToken)
		h.rollback()
	})
}

func TestRollbackForgets(t *testing.T) {
	each(t, func(s *store) {
		require.NoError(s, s.try("r", 5))
		for _, resource := range []string{"r", "new"} {
			h := s.begin(resource, 9)
			require.NoError(s, h.check())
			require.NoError(s, h.write())
			h.rollback()
		}
		require.Equal(s, int64(5), s.stored("r"))
		require.Zero(s, s.stored("new"))
		require.NoError(s, s.try("r", 6))
		require.NoError(s, s.try("new", 1))

		h := s.begin("r", 7)
		require.NoError(s, h.check())
		savepoint := func(command string) {
			_, err := h.tx.ExecContext(s.ctx, command)
			require.NoError(s, err)
		}
		savepoint("SAVEPOINT here")
		h.token = 9
		require.NoError(s, h.check())
		require.NoError(s, h.write())
		savepoint("ROLLBACK TO SAVEPOINT here")
		require.NoError(s, h.commit())
		require.Equal(s, int64(7), s.stored("r"))
		require.Equal(s, []int64{5, 6}, s.written("r"))
	})
}

// The names are those that a collation, padding or a code page would merge.
func TestResourcesAreToldApartByteByByte(t *testing.T) {
	names := []string{
		"a", "A", "a ", " a", "a\t", "á", "a\u0301", "ä", "ß", "ss", "ﬁ", "fi", "1", "01", "1.0",
		"\u200b", "\U0001F512", "a'b", `a"b`, `a\`, `a\'`, "%", "_", "$1", "?", "NULL", "a\nb", "\x01",
	}
	each(t, func(s *store) {
		h := s.begin("", 0)
		for i, name := range names {
			require.NoError(s, s.guard.Check(s.ctx, h.tx, name, int64(len(names)-i)), "%q", name)
		}
		require.NoError(s, h.commit())
		for i, name := range names {
			require.Equal(s, int64(len(names)-i), s.stored(name), "%q", name)
		}
	})
}

// A resource has one row, whatever character sets the connections of its writers use.
func TestCheckFindsAResourceUnderEveryCharacterSet(t *testing.T) {
	names := []string{"Zürich", "Z\u00fcrich ", "東京", "\U0001F512"}
	run(t, slices.DeleteFunc(slices.Clone(settings), func(s setting) bool {
		// pgx itself refuses other encodings in its simple protocol.
		return s.engine.charsets == nil || s.level == sql.LevelDefault && s.engine == &postgres
	}), func(s *store) {
		for i, charset := range s.engine.charsets {
			other := *s
			other.db = s.engine.open(s.T, s.options+charset)
			older, newer := first+int64(2*i), first+int64(2*i+1)
			for _, name := range names {
				require.NoError(s, s.try(name, newer))
				other.refused(other.checkAlone(name, older), older, newer)
				require.NoError(s, other.checkAlone(name, newer), "%s %q", charset, name)
				require.Equal(s, newer, s.stored(name), "%s %q", charset, name)
			}
			require.NoError(s, other.db.Close())
		}
		rows := 0
		require.NoError(s, s.db.QueryRowContext(s.ctx, "SELECT count(*) FROM "+s.fence).Scan(&rows))
		require.Equal(s, len(names), rows)
	})
}

// checkAlone commits a check and writes nothing.
func (s *store) checkAlone(resource string, token int64) error {
	h := s.begin(resource, token)
	if err := h.check(); err != nil {
		h.rollback()
		return err
	}
	return h.commit()
}

func TestTableInAnotherSchema(t *testing.T) {
	each(t, func(s *store) {
		schema := "other"
		if s.engine == &sqlite {
			schema = "main"
		}
		s.fence = schema + "." + s.fence + "x"
		s.guard = s.newGuard(s.fence)
		require.NoError(s, s.try("r", 5))
		require.Equal(s, int64(5), s.stored("r"))
		s.refused(s.try("r", 4), 4, 5)
	})
}

// A caller that gives up while it waits for another transaction does not disturb that one, and
// leaves nothing of its own.
func TestGivingUpWhileWaiting(t *testing.T) {
	eachThatWaits(t, func(s *store) {
		h := s.begin("r", 5)
		require.NoError(s, h.check())

		w := s.begin("r", 6)
		ctx, cancel := context.WithCancelCause(s.ctx)
		said := make(chan error, 1)
		go func() { said <- s.guard.Check(ctx, w.tx, w.name, w.token) }()
		s.awaitWait(w)
		lost := fmt.Errorf("the lock is lost")
		cancel(lost)
		err := <-said
		require.ErrorIs(s, err, context.Canceled)
		require.ErrorIs(s, err, lost)
		w.rollback()

		require.NoError(s, h.finish(nil))
		require.Equal(s, int64(5), s.stored("r"))
		require.ErrorIs(s, s.guard.Check(s.ctx, h.tx, "r", 9), sql.ErrTxDone)
	})
}
