package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
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

// The pattern for most work under a lock: the work ends with its caller or with the lock, whichever
// ends first. Do is the same in one call.
func ExampleLock_Context() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	handle := func(ctx context.Context, work func(context.Context) error) error {
		lock, err := locks.Acquire(ctx, "thumbnails", 10*time.Second)
		if err != nil {
			return err
		}
		defer lock.Release(ctx) // also stops KeepAlive
		lock.KeepAlive()

		held, cancel := context.WithCancelCause(lock.Context()) // ends with the lock …
		defer cancel(nil)
		stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) }) // … or with ctx
		defer stop()
		return work(held)
	}

	gone := errors.New("the client is gone")
	request, end := context.WithCancelCause(context.Background())
	err = handle(request, func(ctx context.Context) error {
		end(gone)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(err)
	// Output:
	// the client is gone
}

// Nothing renews this lock, and its context ends at the end of validity.
func ExampleLock_Context_expired() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := locks.TryAcquire(context.Background(), "blink", 20*time.Millisecond)
	if err != nil {
		log.Fatal(err)
	}
	<-lock.Context().Done()
	fmt.Println(context.Cause(lock.Context()))
	// Output:
	// redlock: validity has ended
}

// A process that may be stopped for longer than its lock lives checks the clock before each action.
func ExampleLock_Valid() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	ctx := context.Background()

	lock, err := locks.TryAcquire(ctx, "valve", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	for step := range 2 {
		if !lock.Valid() {
			fmt.Println("stop:", context.Cause(lock.Context()))
			break
		}
		fmt.Println("step", step)
	}
	fmt.Println(lock.Release(ctx), lock.Valid())
	// Output:
	// step 0
	// step 1
	// <nil> false
}

// Every host has this timer, and their clocks differ by some seconds. One of them sends the
// newsletter.
func ExampleLock_ReleaseAfter() {
	fire := func(host string) {
		locks, err := redlock.Open(masters, redlock.Config{Owner: host})
		if err != nil {
			log.Fatal(err)
		}
		defer locks.Close() // leaves the key taken

		ctx := context.Background()
		lock, err := locks.TryAcquire(ctx, "newsletter", 10*time.Second)
		if errors.Is(err, redlock.ErrHeld) {
			fmt.Println(host, "has nothing to do")
			return
		} else if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(host, "sends the newsletter")
		if err := lock.ReleaseAfter(ctx, time.Minute); err != nil {
			log.Print(err) // another host may send it again
		}
	}
	fire("web-1")
	fire("web-2")
	fire("web-3")
	// Output:
	// web-1 sends the newsletter
	// web-2 has nothing to do
	// web-3 has nothing to do
}

func ExampleFromContext() {
	locks, err := redlock.Open(masters, redlock.Config{Fencing: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// A function that writes takes the lock from its context.
	write := func(ctx context.Context) error {
		lock, ok := redlock.FromContext(ctx, "invoice:42")
		if !ok {
			return errors.New("invoice:42 is not locked")
		}
		fmt.Println("with a token:", lock.FencingToken() > 0) // guard.Check(ctx, tx, lock.Key(), lock.FencingToken())
		return nil
	}
	fmt.Println(locks.Do(context.Background(), "invoice:42", 10*time.Second, write))
	fmt.Println(write(context.Background()))
	// Output:
	// with a token: true
	// <nil>
	// invoice:42 is not locked
}

// A function that runs under the lock calls another that locks the same key.
func ExampleConfig_reentrant() {
	locks, err := redlock.Open(masters, redlock.Config{Reentrant: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	deposit := func(ctx context.Context, sum int) error {
		return locks.Do(ctx, "account:7", 10*time.Second, func(context.Context) error {
			fmt.Println("deposit", sum)
			return nil
		})
	}
	depositAll := func(ctx context.Context, sums ...int) error {
		return locks.Do(ctx, "account:7", 10*time.Second, func(ctx context.Context) error {
			for _, sum := range sums {
				if err := deposit(ctx, sum); err != nil {
					return err
				}
			}
			return nil
		})
	}
	fmt.Println(depositAll(context.Background(), 5, 8))
	// Output:
	// deposit 5
	// deposit 8
	// <nil>
}

// Goroutines that share the context share the lock. What they share otherwise needs a mutex.
func ExampleConfig_reentrantGoroutines() {
	locks, err := redlock.Open(masters, redlock.Config{Reentrant: true})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	var mu sync.Mutex
	sum := 0
	err = locks.Do(context.Background(), "account:7", 10*time.Second, func(ctx context.Context) error {
		var both sync.WaitGroup
		both.Add(2)
		inside := func() {
			err := locks.Do(ctx, "account:7", 10*time.Second, func(context.Context) error {
				both.Done()
				both.Wait() // for the other one: both have a nested lock
				mu.Lock()
				defer mu.Unlock()
				sum += 5
				return nil
			})
			if err != nil {
				log.Fatal(err)
			}
		}
		var done sync.WaitGroup
		done.Go(inside)
		done.Go(inside)
		done.Wait() // before fn returns, as that ends the lock
		return nil
	})
	fmt.Println(sum, err)
	// Output:
	// 10 <nil>
}

// Without Config.Reentrant, a caller that would wait for itself gets an error at once.
func ExampleRedlock_Do_reentrant() {
	locks, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	nothing := func(context.Context) error { return nil }
	err = locks.Do(context.Background(), "account:7", 10*time.Second, func(ctx context.Context) error {
		return locks.Do(ctx, "account:7", 10*time.Second, nothing)
	})
	fmt.Println(errors.Is(err, redlock.ErrReentrant))
	fmt.Println(err)
	// Output:
	// true
	// redlock: acquire "account:7": the context already holds this key
}

// A message queue delivers a message again after an error. The work was done under the lock, and
// the masters die before the lock is released. Doing the work again would be wrong.
func ExampleRedlock_Do_retry() {
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

	handle := func(ctx context.Context) error {
		done := false
		err := locks.Do(ctx, "mail:7", 5*time.Second, func(context.Context) error {
			fmt.Println("mail 7 is sent")
			done = true
			m.Kill(0, 1)
			return nil
		})
		lost := errors.Is(err, redlock.ErrNotHeld) || errors.Is(err, redlock.ErrExpired) || errors.Is(err, redlock.ErrClosed)
		var failed *redlock.QuorumError
		if done && !lost && errors.As(err, &failed) && failed.Op == "release" {
			fmt.Println("not released:", errors.Is(err, redlock.ErrNoQuorum))
			return nil // done, and under the lock to its end
		}
		return err
	}
	fmt.Println(handle(context.Background()))
	// Output:
	// mail 7 is sent
	// not released: true
	// <nil>
}

// One process acquires a lock and hands it over to another one, which goes on with it. The lock is
// never free in between.
func ExampleLock_Detach() {
	here, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	there, err := redlock.Open(masters, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer there.Close()
	ctx := context.Background()

	lock, err := here.Acquire(ctx, "deployment", time.Minute) // enough for the hand-over
	if err != nil {
		log.Fatal(err)
	}
	handle, err := lock.Detach()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(context.Cause(lock.Context()))

	// The handle is a secret: pass it on by a pipe, a file with mode 600 or an encrypted message.
	lock, err = there.Resume(ctx, handle, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	lock.KeepAlive()
	fmt.Println(lock, lock.Release(ctx))
	// Output:
	// redlock: detached
	// redlock.Lock("deployment") <nil>
}
