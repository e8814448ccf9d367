package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/quorumlock/redlock/redlock/fence"
)

var postgres = engine{
	dialect: fence.PostgreSQL,
	open:    launch(startPostgres),
	data:    `CREATE TABLE %s (id BIGSERIAL PRIMARY KEY, resource TEXT NOT NULL, token BIGINT NOT NULL)`,
	insert:  `INSERT INTO %s (resource, token) VALUES ($1, $2)`,
	// Sorts by the time of commit that the server itself has recorded.
	read:   `SELECT token FROM %s WHERE resource = $1 ORDER BY pg_xact_commit_timestamp(xmin), id`,
	stored: `SELECT token FROM %s WHERE resource = $1`,
	id:     `SELECT pg_backend_pid()`,
	waits: func(ctx context.Context, db *sql.DB, id int64) (waits bool, err error) {
		const sql = `SELECT count(*) > 0 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'`
		err = db.QueryRowContext(ctx, sql, id).Scan(&waits)
		return waits, err
	},
	again: func(err error) bool {
		var e *pgconn.PgError
		return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
	},
	charsets: []string{" client_encoding=LATIN1", " client_encoding=WIN1251"},
}

// startPostgres starts a server whose data need not survive a crash.
func startPostgres() (*server, func(string) *sql.DB, error) {
	initdb, err := find("initdb", "apt-get install postgresql, or brew install postgresql",
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
	if err != nil {
		return nil, nil, err
	}
	s, err := newServer()
	if err != nil {
		return nil, nil, err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.run(initdb, "-D", data, "-U", "fence", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return s, nil, err
	}
	open := func(options string) *sql.DB {
		db, err := sql.Open("pgx", "host="+s.dir+" user=fence dbname=postgres "+options)
		if err != nil {
			panic(err) // the text of a test
		}
		return db
	}
	db := open("")
	defer db.Close()
	// Listen on a socket in our own directory, and on no port, which another program may use.
	err = s.start(filepath.Join(filepath.Dir(initdb), "postgres"), []string{
		"-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=60",
		"-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "track_commit_timestamp=on",
	}, db)
	if err != nil {
		return s, nil, err
	}
	_, err = db.ExecContext(context.Background(), "CREATE SCHEMA other")
	return s, open, err
}
