package fence

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
)

// Dialect is the SQL that a database speaks.
type Dialect int

// The dialects. Zero is none of them.
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

// statements are what a dialect says, with %s for the name of the table.
type statements struct {
	schema string // makes the table
	raise  string // raises the stored token and locks its row
	read   string // reads the token under that lock; empty where raise returns it
	hex    bool   // takes a name as hexadecimal digits
}

// Names are compared byte by byte, whatever the database's collation. MySQL pads
// text with blanks to compare it, under utf8mb4_bin too, and so would take "a" and
// "a " for one resource.
//
// A resource has one row for all connections. PostgreSQL and MySQL convert a text from
// the character set that a connection declares, and under two of them "Zürich" would be
// two rows, of which one does not know the other's tokens. A driver's []byte is no way
// out: go-sql-driver sends it as a text to prepared statements. So a name travels as
// hexadecimal digits, which are the same in all character sets (MySQL computes in
// character_set_connection, which may have two or four bytes for a digit; hence the
// conversion to ascii).
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

// on puts the table's name in.
func (s statements) on(table string) statements {
	s.schema = fmt.Sprintf(s.schema, table)
	s.raise = fmt.Sprintf(s.raise, table)
	if s.read != "" {
		s.read = fmt.Sprintf(s.read, table)
	}
	return s
}

// run returns the highest token that the resource has seen, this one among them.
func (s statements) run(ctx context.Context, tx *sql.Tx, resource string, token int64) (highest int64, err error) {
	if s.hex {
		resource = hex.EncodeToString([]byte(resource))
	}
	if s.read == "" {
		err = tx.QueryRowContext(ctx, s.raise, resource, token).Scan(&highest)
		return highest, err
	}
	// The number of rows affected tells nothing here: for an equal token and for a
	// refused one it is 0, and 1 if the connection has clientFoundRows.
	if _, err = tx.ExecContext(ctx, s.raise, resource, token, token); err != nil {
		return 0, err
	}
	// A plain SELECT could read the snapshot of a REPEATABLE READ transaction, in
	// which the token that has just refused this one does not exist yet.
	err = tx.QueryRowContext(ctx, s.read, resource).Scan(&highest)
	return highest, err
}
