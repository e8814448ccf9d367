package redlocktest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// In a test, use redlocktest.Start(t, 3) instead of New and Close.
func Example() {
	masters, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()

	// The client does not retry: the failures here are intended.
	ctx := context.Background()
	client := masters.Master(0).Client(func(o *redis.Options) {
		o.MaxRetries = -1
		o.DialerRetries = 1
	})
	fmt.Println("set:", client.Set(ctx, "greeting", "hello", 0).Val())

	masters.Kill(0)
	fmt.Println("dead:", client.Get(ctx, "greeting").Err() != nil)

	if err := masters.Restart(0); err != nil {
		log.Fatal(err)
	}
	fmt.Println("restarted:", client.Get(ctx, "greeting").Val())

	if err := masters.Master(0).RestartEmpty(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("restarted without memory:", client.Get(ctx, "greeting").Err())
	// Output:
	// set: OK
	// dead: true
	// restarted: hello
	// restarted without memory: redis: nil
}

// When a reply is lost, the caller does not know whether its command was executed. Here it
// was: the key is set.
func ExampleMaster_LoseReplies() {
	masters, err := redlocktest.New(1)
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	master := masters.Master(0)

	ctx := context.Background()
	client := master.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	master.LoseReplies(1)
	fmt.Println("failed:", client.Set(ctx, "key", "value", 0).Err() != nil)
	fmt.Println("keys:", master.Miniredis().Keys())
	// Output:
	// failed: true
	// keys: [key]
}

// A client can distinguish a server that restarted or was replaced from one whose connection
// broke.
func ExampleMaster_FailOver() {
	masters, err := redlocktest.New(1)
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	master := masters.Master(0)

	ctx := context.Background()
	client := master.Client()
	server := func(key string) string { return client.InfoMap(ctx, "server").Item("Server", key) }
	first := server("run_id")

	if err := master.FailOver(); err != nil {
		log.Fatal(err)
	}
	second := server("run_id")
	fmt.Println("failed over: another server:", second != first, "up for days:", server("uptime_in_days"))

	if err := master.Restart(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("restarted: another server:", server("run_id") != second, "up for days:", server("uptime_in_days"))
	// Output:
	// failed over: another server: true up for days: 1
	// restarted: another server: true up for days: 0
}

// A message can get lost although PUBLISH counted a receiver.
func ExampleMaster_LoseMessages() {
	masters, err := redlocktest.New(1)
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	master := masters.Master(0)

	ctx := context.Background()
	client := master.Client()
	subscription := client.Subscribe(ctx, "news")
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		log.Fatal(err)
	}
	master.LoseMessages(1)
	for _, news := range []string{"the first", "the second"} {
		fmt.Println(news, "has receivers:", client.Publish(ctx, "news", news).Val())
	}
	message, err := subscription.ReceiveMessage(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("received:", message.Payload)
	// Output:
	// the first has receivers: 1
	// the second has receivers: 1
	// received: the second
}
