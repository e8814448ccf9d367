package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock/fence"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

func ExampleNew() {
	guard, err := fence.New(fence.PostgreSQL, "app.tokens")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(guard.Schema()) // for a migration; or guard.Create
	// Output:
	// CREATE TABLE IF NOT EXISTS app.tokens (
	// 	resource TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	// 	token BIGINT NOT NULL
	// )
}

// A holder whose lock another client has taken over cannot make this write. The token is
// lock.FencingToken(), and ctx is lock.Context().
func ExampleGuard_Check() {
	pay := func(ctx context.Context, db *sql.DB, guard *fence.Guard, invoice, token int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := guard.Check(ctx, tx, fmt.Sprintf("invoice:%d", invoice), token); err != nil {
			return err // fence.ErrStaleToken: somebody else has the lock by now
		}
		if _, err := tx.ExecContext(ctx, "UPDATE invoices SET paid = true WHERE id = $1", invoice); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = pay
}

func ExampleRedisGuard_Set() {
	masters, err := redlocktest.New(1) // yours is a real one
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	client := redis.NewClient(&redis.Options{Addr: masters.Master(0).Addr()})
	defer client.Close()

	guard, err := fence.NewRedis(client)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	const older, newer = 1790000000000001, 1790000000000002 // lock.FencingToken()
	fmt.Println(guard.Set(ctx, "config", "by the newer holder", 0, newer))

	err = guard.Set(ctx, "config", "by the older one, late", 0, older)
	var stale *fence.StaleError
	fmt.Println(errors.Is(err, fence.ErrStaleToken), errors.As(err, &stale) && stale.Highest == newer)
	fmt.Println(client.Get(ctx, "config").Val())
	// Output:
	// <nil>
	// true true
	// by the newer holder
}
