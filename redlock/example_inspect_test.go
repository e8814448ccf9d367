package redlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/quorumlock/redlock/redlock"
)

func ExampleRedlock_Inspect() {
	ctx := context.Background()
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.TryAcquire(ctx, "invoice:7", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Release(ctx)

	seen, err := locks.Inspect(ctx, "invoice:7") // it need not be ours
	if err != nil {
		log.Fatal(err)
	}
	holder, _ := seen.Holder()
	fmt.Println(seen.Verdict(), holder == lock.Holder(), seen.Nodes[0].Waiting)
	// Output:
	// held true 0
}

func ExampleRedlock_ForceRelease() {
	ctx := context.Background()
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// Its holder's host has burnt down, and its ttl is long.
	if _, err := locks.TryAcquire(ctx, "yearly-report", 24*time.Hour); err != nil {
		log.Fatal(err)
	}

	seen, err := locks.Inspect(ctx, "yearly-report")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := locks.ForceRelease(ctx, seen); err != nil { // what was seen, and no newer lock
		log.Fatal(err)
	}
	lock, err := locks.TryAcquire(ctx, "yearly-report", time.Minute)
	fmt.Println(err, lock.Release(ctx))
	// Output:
	// <nil> <nil>
}
