package idle

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/child"
	"github.com/quorumlock/redlock/bench/masters"
)

const waiterFlag = "-wait"

// TestMain makes the test's own binary the process that waits.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == waiterFlag {
		if child.Run(os.Args[2], os.Stdin, os.Stdout, Child) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestWaitersOnlyWait(t *testing.T) {
	set := masters.Start(t, 5)
	found, err := Measure(t.Context(), set, waiterFlag, Plan{
		Addrs: set.Addrs(5), Waiters: 50, Settle: time.Second, For: time.Second,
	})
	require.NoError(t, err)
	assert.Equal(t, 50, found.Waiters)
	assert.Zero(t, found.WereServed)
	assert.Positive(t, found.Settled)
	assert.Positive(t, found.Cores)
}
