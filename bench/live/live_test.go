package live

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/bench/masters"
)

const childFlag = "-hold-locks"

// TestMain makes the test's own binary the child.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		if Child(os.Args[2], os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestLocksAreHeldByAnotherProcess(t *testing.T) {
	set := masters.Start(t, 5)
	p := Plan{Addrs: set.Addrs(5), Locks: 300, TTL: 3 * time.Second, For: 2 * time.Second}
	r, err := Measure(t.Context(), set, childFlag, p)
	require.NoError(t, err)
	assert.Zero(t, r.Lost)
	assert.Equal(t, p.Locks, r.Locks)
	assert.Positive(t, r.PerLock)
	assert.Positive(t, r.Cores)
	// In two seconds each lock is renewed twice, a second apart.
	assert.InDelta(t, float64(p.Locks), r.PerSecond, float64(p.Locks)/2)
}

func TestAChildThatCannotLockSaysWhy(t *testing.T) {
	set := masters.Start(t, 1)
	p := Plan{Addrs: set.Addrs(1), Locks: 1, TTL: time.Nanosecond, For: time.Second}
	_, err := Measure(t.Context(), set, childFlag, p)
	assert.ErrorContains(t, err, "ttl")
}
