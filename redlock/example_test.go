package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// The examples use in-memory masters; use real ones.
var masters []string

func Example() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// At most one process runs this at a time, whichever two masters are down.
	err = locks.Do(context.Background(), "search-index", 10*time.Second, func(ctx context.Context) error {
		fmt.Println("rebuilding the index")
		return ctx.Err() // ctx ends if the lock is lost
	})
	fmt.Println("done:", err)
	// Output:
	// rebuilding the index
	// done: <nil>
}

func ExampleOpen() {
	locks, err := redlock.Open([]string{
		"redis://:secret@redis-a.example.com:6379",
		"rediss://locker:secret@redis-b.example.com:6380/2",
		"unix:///run/redis/redis.sock",
	}, redlock.Config{KeyPrefix: "locks:"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	_, err = redlock.Open([]string{"redis://:s3cret/@localhost"}, redlock.Config{})
	fmt.Println(err) // without the password
	// Output:
	// redlock: urls[0] is not a URL (are special characters of the password percent-encoded?)
}

func ExampleNew() {
	// Any *redis.Client or *redis.ClusterClient is a node.
	primary := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "locks",
		SentinelAddrs: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
	})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"cluster-1:6379"}})
	single := redis.NewClient(&redis.Options{Addr: "redis-c:6379", Username: "locker", Password: "secret"})

	locks, err := redlock.New([]redis.UniversalClient{primary, cluster, single}, redlock.Config{
		NodeTimeout: 50 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	// Close the clients after the Redlock.
	fmt.Println(locks.Close(), primary.Close(), cluster.Close(), single.Close())
	// Output:
	// <nil> <nil> <nil> <nil>
}

func ExampleRedlock_TryAcquire() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	lock, err := locks.TryAcquire(ctx, "cart:42", 5*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	_, err = locks.TryAcquire(ctx, "cart:42", 5*time.Second)
	switch {
	case errors.Is(err, redlock.ErrHeld):
		fmt.Println("somebody else has it")
	case errors.Is(err, redlock.ErrNoQuorum):
		fmt.Println("too many masters are down")
	}
	fmt.Println("released:", lock.Release(ctx))
	// Output:
	// somebody else has it
	// released: <nil>
}

func ExampleRedlock_Acquire() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// Wait for half a minute at the most.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	lock, err := locks.Acquire(ctx, "migration", time.Minute)
	if err != nil {
		log.Fatal(err) // says why: held, or which masters did not answer
	}
	defer lock.Release(ctx)
	fmt.Println("locked", lock.Key())
	// Output:
	// locked migration
}

func ExampleRedlock_Do() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(context.Background(), "import", 10*time.Second, func(ctx context.Context) error {
		for batch := range 3 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // lost, or cancelled
			}
			fmt.Println("batch", batch)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// batch 0
	// batch 1
	// batch 2
	// <nil>
}

func ExampleLock_KeepAlive() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	lock, err := locks.TryAcquire(ctx, "leader", 3*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	lock.KeepAlive() // for as long as it takes; a crash frees the lock after 3 s
	select {
	case <-lock.Context().Done():
		fmt.Println("lost:", context.Cause(lock.Context()))
	default:
		fmt.Println("leading")
	}
	fmt.Println(lock.Release(ctx))
	// Output:
	// leading
	// <nil>
}

func ExampleLock_Extend() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	lock, err := locks.TryAcquire(ctx, "invoice", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	before := lock.Until()
	fmt.Println(lock.Extend(ctx, time.Minute), lock.Until().After(before))
	fmt.Println(lock.Extend(ctx, time.Second), "and never shorter:", time.Until(lock.Until()) > 50*time.Second)
	fmt.Println(lock.Release(ctx))
	// Output:
	// <nil> true
	// <nil> and never shorter: true
	// <nil>
}

func ExampleLock_Release() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	lock, err := locks.TryAcquire(ctx, "door", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lock.Release(ctx))
	fmt.Println(lock.Release(ctx))
	fmt.Println(context.Cause(lock.Context()))
	// Output:
	// <nil>
	// redlock: release "door": released
	// redlock: released
}

func ExampleQuorumError() {
	m, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	locks, err := redlock.Open(m.URLs(), redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	m.Kill(0, 1)

	_, err = locks.TryAcquire(context.Background(), "job", time.Second)
	var failed *redlock.QuorumError
	if errors.As(err, &failed) && errors.Is(err, redlock.ErrNoQuorum) {
		fmt.Printf("%s %q needs %d of %d masters\n", failed.Op, failed.Key, failed.Need, failed.Total)
	}
	// Output:
	// acquire "job" needs 2 of 3 masters
}

func ExampleConfig_trace() {
	seen := make(chan redlock.Trace, 10)
	locks, err := redlock.Open(masters, redlock.Config{
		Trace: func(t redlock.Trace) { seen <- t }, // or a histogram of t.Elapsed
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	if _, err := locks.TryAcquire(context.Background(), "traced", time.Second); err != nil {
		log.Fatal(err)
	}
	t := <-seen
	fmt.Println(t.Op, t.Key, t.Outcome, len(t.Nodes), "nodes")
	// Output:
	// acquire traced won 5 nodes
}

func ExampleRedlock_Close() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	lock, err := locks.TryAcquire(context.Background(), "held", time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(locks.Close()) // releases the locks that are held
	fmt.Println(context.Cause(lock.Context()))
	// Output:
	// <nil>
	// redlock: closed
}

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

	seen, err := locks.Inspect(ctx, "invoice:7") // the lock need not be ours
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

	// The host of its holder has burnt down, and its ttl is long.
	if _, err := locks.TryAcquire(ctx, "yearly-report", 24*time.Hour); err != nil {
		log.Fatal(err)
	}

	seen, err := locks.Inspect(ctx, "yearly-report")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := locks.ForceRelease(ctx, seen); err != nil { // not a newer lock
		log.Fatal(err)
	}
	lock, err := locks.TryAcquire(ctx, "yearly-report", time.Minute)
	fmt.Println(err, lock.Release(ctx))
	// Output:
	// <nil> <nil>
}
