package certmagiclock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/quorumlock/redlock/integration/certmagiclock"
	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Two instances share a folder. certmagic would take the lock by itself, to get a certificate.
func Example() {
	masters, err := redlocktest.New(3) // in production, the URLs of three or five Redis masters
	if err != nil {
		log.Fatal(err)
	}
	defer masters.Close()
	folder, err := os.MkdirTemp("", "certificates")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	instance := func() (certmagic.Storage, *redlock.Redlock) {
		locks, err := redlock.Open(masters.URLs(), redlock.Config{})
		if err != nil {
			log.Fatal(err)
		}
		storage, err := certmagiclock.Wrap(&certmagic.FileStorage{Path: folder}, locks, 30*time.Second)
		if err != nil {
			log.Fatal(err)
		}
		return storage, locks // certmagic.Default.Storage = storage
	}
	one, locks := instance()
	defer locks.Close()
	two, locks := instance()
	defer locks.Close()

	ctx := context.Background()
	if err := one.Lock(ctx, "issue_cert_example.com"); err != nil {
		log.Fatal(err)
	}
	locked, err := two.(certmagic.TryLocker).TryLock(ctx, "issue_cert_example.com")
	fmt.Println("both at once:", locked, err)
	if err := one.Unlock(ctx, "issue_cert_example.com"); err != nil {
		log.Fatal(err)
	}
	locked, err = two.(certmagic.TryLocker).TryLock(ctx, "issue_cert_example.com")
	fmt.Println("one after the other:", locked, err)
	// Output:
	// both at once: false <nil>
	// one after the other: true <nil>
}
