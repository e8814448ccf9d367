//go:build linux

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/history"
)

func TestTrueTime(t *testing.T) {
	clock := trueTime{monotonic()}
	before := clock.now()
	instant := time.Now()
	after := clock.now()
	got := clock.of(instant)
	require.LessOrEqual(t, got, after, "later than it was")
	require.GreaterOrEqual(t, got, before-exact)
}

// A client that was stopped with its parent dead would be there for ever; what its
// input does not tell it the kernel does. This is the input's half.
func TestClientEndsWithItsInput(t *testing.T) {
	m, err := startMember(clientConfig{
		Client: 1, Epoch: monotonic(), Hold: time.Minute,
		URLs: []string{"redis://127.0.0.1:1"}, // where nobody is
	}, func(history.Event) {})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.kill() })
	require.NoError(t, m.orders.Close())
	<-m.done
	require.Equal(t, abandoned, m.cmd.ProcessState.ExitCode(), m.stderr.String())
}
