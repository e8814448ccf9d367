package fence

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewNamesTheArgument(t *testing.T) {
	for _, d := range []Dialect{-1, 0, 4} {
		_, err := New(d, "")
		require.ErrorContains(t, err, "fence: dialect ")
	}
	for _, table := range []string{
		" ", "a b", "a;DROP TABLE b", `"a"`, "`a`", "[a]", "a.b.c", ".a", "a.", "1a", "a-b", "ä", "a\n", "a--", "a\x00", "%s",
		strings.Repeat("a", 64), strings.Repeat("a", 64) + ".b",
	} {
		_, err := New(PostgreSQL, table)
		require.ErrorContains(t, err, "fence: table ", "%q", table)
	}
	for _, table := range []string{"", "a", "_a1", "Locks.fence_2", strings.Repeat("a", 63) + "." + strings.Repeat("b", 63)} {
		_, err := New(MySQL, table)
		require.NoError(t, err, "%q", table)
	}
	require.Equal(t, "PostgreSQL MySQL SQLite Dialect(7)", strings.Join([]string{
		PostgreSQL.String(), MySQL.String(), SQLite.String(), Dialect(7).String(),
	}, " "))
}

// TestStatements checks the statements word by word. Module sqltest tests them on real
// databases: after changing a statement, run its tests too.
func TestStatements(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		table   string
		schema  string
		asked   []asked
	}{
		{PostgreSQL, "",
			"CREATE TABLE IF NOT EXISTS redlock_fence (\n\tresource TEXT COLLATE \"C\" NOT NULL PRIMARY KEY,\n\ttoken BIGINT NOT NULL\n)",
			[]asked{{"INSERT INTO redlock_fence AS f (resource, token) VALUES (convert_from(decode($1, 'hex'), 'UTF8'), $2)\n" +
				"ON CONFLICT (resource) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token)\nRETURNING token", []any{"72", int64(7)}}}},
		{MySQL, "s.t",
			"CREATE TABLE IF NOT EXISTS s.t (\n\tresource VARBINARY(255) NOT NULL PRIMARY KEY,\n\ttoken BIGINT NOT NULL\n) ENGINE = InnoDB",
			[]asked{
				{"INSERT INTO s.t (resource, token) VALUES (UNHEX(CONVERT(? USING ascii)), ?)\nON DUPLICATE KEY UPDATE token = GREATEST(token, ?)", []any{"72", int64(7), int64(7)}},
				{"SELECT token FROM s.t WHERE resource = UNHEX(CONVERT(? USING ascii)) FOR UPDATE", []any{"72"}},
			}},
		{SQLite, "t",
			"CREATE TABLE IF NOT EXISTS t (\n\tresource TEXT COLLATE BINARY NOT NULL PRIMARY KEY,\n\ttoken INTEGER NOT NULL\n)",
			[]asked{{"INSERT INTO t AS f (resource, token) VALUES (?, ?)\n" +
				"ON CONFLICT (resource) DO UPDATE SET token = max(f.token, excluded.token)\nRETURNING token", []any{"r", int64(7)}}}},
	} {
		t.Run(c.dialect.String(), func(t *testing.T) {
			g, err := New(c.dialect, c.table)
			require.NoError(t, err)
			require.Equal(t, c.schema, g.Schema())

			s := &stub{token: 7}
			tx := s.begin(t)
			require.NoError(t, g.Check(t.Context(), tx, "r", 7), "no rows affected is an equal token, which passes")
			require.Equal(t, c.asked, s.asked)

			s.asked = nil
			require.NoError(t, g.Create(t.Context(), tx))
			require.Equal(t, []asked{{c.schema, nil}}, s.asked)

			s.token = 9
			err = g.Check(t.Context(), tx, "r", 7)
			require.ErrorIs(t, err, ErrStaleToken)
			var stale *StaleError
			require.ErrorAs(t, err, &stale)
			require.Equal(t, StaleError{Resource: "r", Token: 7, Highest: 9}, *stale)
			require.EqualError(t, err, `fence: stale token: "r" refuses 7 after 9`)

			s.err = errors.New("deadlock")
			err = g.Check(t.Context(), tx, "r", 10)
			require.ErrorIs(t, err, s.err)
			require.NotErrorIs(t, err, ErrStaleToken)
			require.EqualError(t, err, `fence: check "r": deadlock`)
			require.ErrorIs(t, g.Create(t.Context(), tx), s.err)
		})
	}
}

func TestCheckNamesTheArgument(t *testing.T) {
	s := &stub{}
	tx := s.begin(t)
	g, err := New(PostgreSQL, "")
	require.NoError(t, err)
	for _, c := range []struct {
		resource string
		token    int64
		want     string
	}{
		{"", 1, "fence: resource is empty"},
		{strings.Repeat("é", 128), 1, "fence: resource \""},
		{strings.Repeat("x", 1<<20), 1, "has 1048576 bytes, more than 255"},
		{"a\x00b", 1, "contains a NUL"},
		{"a\xffb", 1, "is not valid UTF-8"},
		{"a", 0, "fence: token 0 "},
		{"a", -1, "fence: token -1 "},
		{"a", 1 << 53, "fence: token 9007199254740992 "},
	} {
		err := g.Check(t.Context(), tx, c.resource, c.token)
		require.ErrorContains(t, err, c.want)
		require.NotErrorIs(t, err, ErrStaleToken)
		require.Less(t, len(err.Error()), 300, "a message is for reading")
	}
	require.EqualError(t, g.Check(t.Context(), nil, "a", 1), "fence: tx is nil")
	require.EqualError(t, g.Create(t.Context(), nil), "fence: db is nil")
	require.ErrorContains(t, new(Guard).Check(t.Context(), tx, "a", 1), "made by New")
	require.ErrorContains(t, new(Guard).Create(t.Context(), tx), "made by New")
	require.Empty(t, s.asked, "nothing was sent")

	s.token = 1<<53 - 1
	require.NoError(t, g.Check(t.Context(), tx, strings.Repeat("x", 255), 1<<53-1))
}

// A holder that passes its lock's context to Check learns from the error that the lock was lost.
func TestCheckSaysWhyItsContextEnded(t *testing.T) {
	g, err := New(PostgreSQL, "")
	require.NoError(t, err)
	s := &stub{}
	tx := s.begin(t)
	lost := errors.New("redlock: validity has ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	err = g.Check(ctx, tx, "a", 1)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lost)
	require.EqualError(t, err, `fence: check "a": context canceled (redlock: validity has ended)`)

	require.NoError(t, tx.Rollback())
	require.ErrorIs(t, g.Check(t.Context(), tx, "a", 1), sql.ErrTxDone)
	require.Empty(t, s.asked)
}

func TestStaleErrorWithoutTheHighest(t *testing.T) {
	err := error(&StaleError{Resource: strings.Repeat("x", 1000), Token: 3})
	require.ErrorIs(t, err, ErrStaleToken)
	require.EqualError(t, err, `fence: stale token: "`+strings.Repeat("x", 100)+`…" refuses 3`)
}
