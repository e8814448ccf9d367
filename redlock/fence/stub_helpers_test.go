package fence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// stub is a database/sql driver that records its statements and answers each query with one
// row. The tests on real databases are in the module sqltest.
type stub struct {
	token int64   // the answer to a query
	err   error   // if set, the answer to every statement
	asked []asked // the statements so far
}

type asked struct {
	sql  string
	args []any
}

// begin starts a transaction on the stub.
func (s *stub) begin(t *testing.T) *sql.Tx {
	t.Helper()
	db := sql.OpenDB(s)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	tx, err := db.Begin()
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func (s *stub) note(query string, args []driver.NamedValue) error {
	a := asked{sql: query}
	for _, v := range args {
		a.args = append(a.args, v.Value)
	}
	s.asked = append(s.asked, a)
	return s.err
}

func (s *stub) Connect(context.Context) (driver.Conn, error) { return stubConn{s}, nil }
func (s *stub) Driver() driver.Driver                        { return nil }

type stubConn struct{ s *stub }

func (c stubConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (c stubConn) Close() error                        { return nil }
func (c stubConn) Begin() (driver.Tx, error)           { return c, nil }
func (c stubConn) Commit() error                       { return nil }
func (c stubConn) Rollback() error                     { return nil }

// ExecContext reports that no rows were affected, as MySQL does for an equal token.
func (c stubConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), c.s.note(query, args)
}

func (c stubConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.s.note(query, args); err != nil {
		return nil, err
	}
	return &stubRows{token: c.s.token}, nil
}

type stubRows struct {
	token int64
	read  bool
}

func (r *stubRows) Columns() []string { return []string{"token"} }
func (r *stubRows) Close() error      { return nil }
func (r *stubRows) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	dest[0] = r.token
	return nil
}
