package sqltest

import (
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"testing"

	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/quorumlock/redlock/redlock/fence"
)

var sqlite = engine{
	dialect: fence.SQLite,
	open:    openSQLite,
	data:    `CREATE TABLE %s (id INTEGER PRIMARY KEY AUTOINCREMENT, resource TEXT NOT NULL, token INTEGER NOT NULL)`,
	insert:  `INSERT INTO %s (resource, token) VALUES (?, ?)`,
	read:    `SELECT token FROM %s WHERE resource = ? ORDER BY id`,
	stored:  `SELECT token FROM %s WHERE resource = ?`,
	again: func(err error) bool {
		var e *sqlitedriver.Error
		return errors.As(err, &e) && e.Code()&0xff == sqlitelib.SQLITE_BUSY
	},
}

// openSQLite opens a database file of the test's own, for several connections.
func openSQLite(t *testing.T, options string) *sql.DB {
	t.Helper()
	file := url.URL{Scheme: "file", Opaque: filepath.Join(t.TempDir(), "data.sqlite"), RawQuery: options + "&_pragma=synchronous(off)"}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		t.Fatal(err)
	}
	return db
}
