package fence

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
)

// Dialect is a database's dialect of SQL.
type Dialect int

// The supported dialects. The zero Dialect is none of them.
const (
	PostgreSQL Dialect = iota + 1 // 9.5 and later, for ON CONFLICT
	MySQL                         // MySQL and MariaDB, on InnoDB
	SQLite                        // 3.35 and later, for RETURNING
)

func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	default:
		return fmt.Sprintf("Dialect(%d)", int(d))
	}
}

// statements are the SQL statements of a dialect, with %s for the name of the table.
type statements struct {
	schema string // makes the table
	raise  string // raises the stored token and locks its row
	read   string // reads the token under that lock; empty if raise returns the token
	hex    bool   // raise and read take the resource's name as hexadecimal digits
}

// dialects holds the statements of each dialect.
//
// They compare the names of resources byte by byte, whatever the database's collation. In
// MySQL the column is VARBINARY, as MySQL pads texts with blanks to compare them, under
// utf8mb4_bin too, and so would take "a" and "a " for one resource.
//
// A resource must have the same row for all connections. PostgreSQL and MySQL convert a text
// from the character set that a connection declares. Under two character sets "Zürich" would
// have two rows, and one would not know the other's tokens. A driver's []byte does not help:
// go-sql-driver sends it as a text to prepared statements. So a name is sent as hexadecimal
// digits, which are the same in all character sets. (MySQL computes in
// character_set_connection, which may have two or four bytes for a digit, so the statements
// convert the digits to ascii.)
var dialects = map[Dialect]statements{
	PostgreSQL: {
		hex: true,
		schema: `CREATE TABLE IF NOT EXISTS %s (
	resource TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	token BIGINT NOT NULL
)`,
		raise: `INSERT INTO %s AS f (resource, token) VALUES (convert_from(decode($1, 'hex'), 'UTF8'), $2)
ON CONFLICT (resource) DO UPDATE SET token = GREATEST(f.token, EXCLUDED.token)
RETURNING token`,
	},
	MySQL: {
		hex: true,
		schema: `CREATE TABLE IF NOT EXISTS %s (
	resource VARBINARY(255) NOT NULL PRIMARY KEY,
	token BIGINT NOT NULL
) ENGINE = InnoDB`,
		raise: `INSERT INTO %s (resource, token) VALUES (UNHEX(CONVERT(? USING ascii)), ?)
ON DUPLICATE KEY UPDATE token = GREATEST(token, ?)`,
		read: `SELECT token FROM %s WHERE resource = UNHEX(CONVERT(? USING ascii)) FOR UPDATE`,
	},
	SQLite: {
		schema: `CREATE TABLE IF NOT EXISTS %s (
	resource TEXT COLLATE BINARY NOT NULL PRIMARY KEY,
	token INTEGER NOT NULL
)`,
		raise: `INSERT INTO %s AS f (resource, token) VALUES (?, ?)
ON CONFLICT (resource) DO UPDATE SET token = max(f.token, excluded.token)
RETURNING token`,
	},
}

// on returns the statements with the table's name inserted.
func (s statements) on(table string) statements {
	s.schema = fmt.Sprintf(s.schema, table)
	s.raise = fmt.Sprintf(s.raise, table)
	if s.read != "" {
		s.read = fmt.Sprintf(s.read, table)
	}
	return s
}

// run records the token if it is the highest that the resource has seen, and returns the
// highest.
func (s statements) run(ctx context.Context, tx *sql.Tx, resource string, token int64) (highest int64, err error) {
	if s.hex {
		resource = hex.EncodeToString([]byte(resource))
	}
	if s.read == "" {
		err = tx.QueryRowContext(ctx, s.raise, resource, token).Scan(&highest)
		return highest, err
	}
	// The number of affected rows does not distinguish an equal token from a refused one: it
	// is 0 for both, and 1 if the connection has clientFoundRows.
	if _, err = tx.ExecContext(ctx, s.raise, resource, token, token); err != nil {
		return 0, err
	}
	// A plain SELECT could read the snapshot of a REPEATABLE READ transaction, in which the
	// higher token that has just refused this one does not exist yet.
	err = tx.QueryRowContext(ctx, s.read, resource).Scan(&highest)
	return highest, err
}
