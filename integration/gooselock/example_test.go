package gooselock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/quorumlock/redlock/integration/gooselock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// migrations would be an embed.FS.
var migrations = fstest.MapFS{
	"00001_users.sql":  {Data: []byte("-- +goose Up\nCREATE TABLE users (name TEXT);")},
	"00002_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);")},
}

// An instance of a service migrates when it starts, unless another one has done it.
func Example() {
	masters, err := redlocktest.New(3) // in production, the URLs of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	locks, err := redlock.Open(masters.URLs(), redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection to :memory: is another database

	locker, err := gooselock.New(locks, "migrate:shop", 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	// Wait for another instance for ten minutes at the most.
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	ctx, cancel := locker.Context(ctx) // ends if the lock is lost
	defer cancel()
	results, err := provider.Up(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Source.Path)
	}
	// Output:
	// 00001_users.sql
	// 00002_orders.sql
}
