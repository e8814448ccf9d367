package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/quorumlock/redlock/redlock/fence"
)

var mariadb = engine{
	dialect: fence.MySQL,
	open:    launch(startMariaDB),
	data:    `CREATE TABLE %s (id BIGINT AUTO_INCREMENT PRIMARY KEY, resource VARBINARY(255) NOT NULL, token BIGINT NOT NULL) ENGINE = InnoDB`,
	insert:  `INSERT INTO %s (resource, token) VALUES (?, ?)`,
	read:    `SELECT token FROM %s WHERE resource = ? ORDER BY id`,
	stored:  `SELECT token FROM %s WHERE resource = ?`,
	id:      `SELECT CONNECTION_ID()`,
	waits: func(ctx context.Context, db *sql.DB, id int64) (bool, error) {
		// The table innodb_trx has the same facts, but is updated only when nobody has read it
		// for 100 ms.
		var kind, name, status string
		err := db.QueryRowContext(ctx, "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status)
		for transaction := range strings.SplitSeq(status, "---TRANSACTION ") {
			if strings.Contains(transaction, "LOCK WAIT") && strings.Contains(transaction, fmt.Sprintf("thread id %d,", id)) {
				return true, err
			}
		}
		return false, err
	},
	again: func(err error) bool {
		var e *mysql.MySQLError
		// 1213: deadlock. 1020: record has changed since last read (innodb_snapshot_isolation).
		return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1020)
	},
	charsets: []string{
		"&character_set_connection=latin1", "&character_set_connection=utf16", "&character_set_connection=ascii",
		"&character_set_client=latin1", "&character_set_client=latin1&interpolateParams=true", "&character_set_client=cp1251",
	},
}

// startMariaDB starts a server whose data need not survive a crash.
func startMariaDB() (*server, func(string) *sql.DB, error) {
	const install = "apt-get install mariadb-server-core mariadb-client-core, or brew install mariadb"
	installer, err := find("mariadb-install-db", install)
	if err != nil {
		return nil, nil, err
	}
	program, err := find("mariadbd", install, "/usr/sbin", "/usr/libexec")
	if err != nil {
		return nil, nil, err
	}
	s, err := newServer()
	if err != nil {
		return nil, nil, err
	}
	data := filepath.Join(s.dir, "data")
	err = s.run(installer, "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	if err != nil {
		return s, nil, err
	}
	socket := filepath.Join(s.dir, "socket")
	open := func(options string) *sql.DB {
		db, err := sql.Open("mysql", "root@unix("+socket+")/mysql?"+options)
		if err != nil {
			panic(err) // the text of a test
		}
		return db
	}
	db := open("")
	defer db.Close()
	err = s.start(program, []string{
		"--no-defaults", "--datadir=" + data, "--socket=" + socket, "--skip-networking",
		"--pid-file=" + filepath.Join(s.dir, "pid"), "--tmpdir=" + s.dir,
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
		"--skip-log-bin", "--performance-schema=OFF",
	}, db)
	if err != nil {
		return s, nil, err
	}
	_, err = db.ExecContext(context.Background(), "CREATE DATABASE other")
	return s, open, err
}
