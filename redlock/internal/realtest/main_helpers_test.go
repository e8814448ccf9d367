// Package realtest_test tests Redlocks on real redis-server processes, and so in real time. No test
// asserts how long something takes. An operation that must not wait has a limit that only a hang
// reaches. Slow effects are polled.
package realtest_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain runs four tests at a time unless the flag -parallel says otherwise: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "4")
	}
	goleak.VerifyTestMain(m)
}

const key, ttl = "orders", 10 * time.Second

// fenceKey is where nodes store the fence of key.
const fenceKey = "redlock:fence:{" + key + "}"
