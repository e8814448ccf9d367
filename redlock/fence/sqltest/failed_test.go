package sqltest

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	sqlitedriver "modernc.org/sqlite"
)

// A statement that fails after a check can end the transaction on the server, while the sql.Tx
// goes on and commits each further statement on its own. If the holder then writes, instead of
// rolling back as Check asks for, its write lands after that of a newer holder. PostgreSQL
// refuses such a write. If another database or driver does so too, update Check's
// documentation.
func TestCheckDoesNotOutliveAFailedStatement(t *testing.T) {
	fail := map[*engine]func(*store, *holder){
		&postgres: func(s *store, h *holder) {
			_, err := h.tx.ExecContext(s.ctx, "SELECT 1/0")
			require.Error(s, err)
		},
		&mariadb: deadlock,
		&sqlite:  cancelled,
	}
	run(t, slices.DeleteFunc(slices.Clone(settings), func(s setting) bool {
		return s.engine == &mariadb && !s.orderly
	}), func(s *store) {
		for _, rolledBack := range []bool{true, false} {
			resource := map[bool]string{true: "rolled back", false: "goes on"}[rolledBack]
			older := s.begin(resource, first)
			require.NoError(s, older.check())
			fail[s.engine](s, older)
			if rolledBack {
				older.rollback()
			}
			if s.engine == &postgres && !rolledBack {
				require.ErrorContains(s, older.write(), "current transaction is aborted")
				older.rollback()
				continue
			}

			require.NoError(s, s.try(resource, first+1), "nothing of the older transaction is in its way")
			if rolledBack {
				require.Equal(s, []int64{first + 1}, s.written(resource))
				continue
			}
			require.NoError(s, older.write())
			_ = older.commit() // with SQLite there is no transaction to commit
			require.Equal(s, []int64{first + 1, first}, s.written(resource), "what the documentation warns of")
		}
	})
}

// deadlock makes the holder's transaction the victim of a deadlock.
func deadlock(s *store, h *holder) {
	s.Helper()
	s.exec("DELETE FROM side_" + s.data)
	s.exec("INSERT INTO side_" + s.data + " VALUES (1), (2)")
	do := func(h *holder, query string) error {
		_, err := h.tx.ExecContext(s.ctx, query)
		return err
	}
	other := s.begin("other", 1)
	for range 100 { // the transaction that has done less is the victim
		require.NoError(s, other.write())
	}
	const all = " SET n = n + 1"
	require.NoError(s, do(other, "UPDATE side_"+s.data+all))
	said := make(chan error, 1)
	other.name = h.name
	go func() { said <- other.check() }()
	s.awaitWait(other)
	err := do(h, "UPDATE side_"+s.data+all)
	require.True(s, s.engine.again(err), "%v", err)
	require.NoError(s, <-said)
	other.rollback()
}

// cancelled cancels a statement of the holder while it writes.
func cancelled(s *store, h *holder) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	cancels.Store(s.data, cancel)
	_, err := h.tx.ExecContext(ctx, "INSERT INTO side_"+s.data+
		" WITH RECURSIVE endless(n) AS (SELECT 1 UNION ALL SELECT cancel_test('"+s.data+"') FROM endless) SELECT n FROM endless")
	require.Error(s, err)
}

// cancels holds the functions that cancel_test, a function in SQLite, calls by name.
var cancels sync.Map

func init() {
	sqlitedriver.MustRegisterScalarFunction("cancel_test", 1, func(_ *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
		if cancel, ok := cancels.Load(args[0]); ok {
			cancel.(context.CancelFunc)()
		}
		return int64(1), nil
	})
}
