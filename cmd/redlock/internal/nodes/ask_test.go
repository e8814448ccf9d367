package nodes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// askedVirtually asks a master in virtual time, whenever check calls ask.
func askedVirtually(t *testing.T, check func(m *redlocktest.Master, ask func(context.Context) answers)) {
	synctest.Test(t, func(t *testing.T) {
		m := redlocktest.StartVirtual(t, 1).Master(0)
		client := m.Client(func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries = true, -1 })
		check(m, func(ctx context.Context) answers { return ask(ctx, client, "", time.Second) })
	})
}

// The server's clock is ours. If both ways take the same time, the offset is exact. If not, it is
// within the uncertainty, and no method is better.
func TestAClockIsReadInTheMiddleOfTheRoundTrip(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct{ request, reply, offset time.Duration }{
		{20 * ms, 20 * ms, 0},
		{40 * ms, 0, 20 * ms},
		{0, 40 * ms, -20 * ms},
	} {
		askedVirtually(t, func(m *redlocktest.Master, ask func(context.Context) answers) {
			m.Delay(tc.request, tc.reply)
			a := ask(context.Background())
			require.NoError(t, a.err)
			assert.Equal(t, 40*ms, a.roundTrip)
			assert.Equal(t, &clockReading{cli.Micros(tc.offset), cli.Micros(20 * ms)}, a.clock)
		})
	}
}

func TestWhoDoesNotAnswerIsAskedOnce(t *testing.T) {
	askedVirtually(t, func(m *redlocktest.Master, ask func(context.Context) answers) {
		m.Stall()
		start := time.Now()
		a := ask(context.Background())
		assert.Equal(t, time.Second, time.Since(start))
		assert.Error(t, a.err)
		assert.Contains(t, tellUnreachable(newMaster("h:1", a, time.Second)), "does not answer within 1s")
		m.Resume()
	})
}

func TestWhoIsInterruptedAsksNobody(t *testing.T) {
	askedVirtually(t, func(_ *redlocktest.Master, ask func(context.Context) answers) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		start := time.Now()
		assert.ErrorIs(t, ask(ctx).err, context.Canceled)
		assert.Zero(t, time.Since(start))
	})
}

func TestInfoIsReadAsWrittenAndCannotDriveATerminal(t *testing.T) {
	assert.Equal(t, map[string]string{"redis_version": "7.0.15", "os": "Linux: x", "run_id": " [2J"},
		infoFields("# Server\r\nredis_version:7.0.15\r\nos:Linux: x\r\nrun_id:\x1b[2J\r\n\r\nnonsense\r\n"))
}
