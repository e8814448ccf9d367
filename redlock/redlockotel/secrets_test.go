package redlockotel_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/redlock"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// Values, handles, passwords and the owner's label are nowhere: in no metric, exemplar or span, and
// in no line of the log.
func TestNoSecretsAreExported(t *testing.T) {
	for name, cfg := range map[string]redlock.Config{
		"default":            {},
		"fencing, guard":     {Fencing: true, RestartGuard: 6 * ttl},
		"fair, and prefixed": {Fair: true, KeyPrefix: "app:"},
	} {
		t.Run(name, func(t *testing.T) {
			masters := redlocktest.Start(t, 3)
			password, owner := "s3cret-password", "the owner's label"
			for _, m := range masters.All() {
				m.SetPassword(password)
			}
			var logged bytes.Buffer // locks.Close waits for the log
			o := observe(t)
			cfg.Observer, cfg.Owner = o, owner
			cfg.Logger = slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
			locks, err := redlock.Open(masters.URLs(), cfg)
			require.NoError(t, err)
			ctx, span := o.tracer.Start(t.Context(), "work")
			secret := session(t, ctx, locks, masters)
			span.End()
			for _, m := range masters.All() {
				m.SetPassword("another " + password) // handshakes fail from now on
			}
			masters.Kill(0, 1, 2)
			require.NoError(t, masters.Restart(0, 1, 2))
			_, err = locks.TryAcquire(ctx, key, ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NoError(t, locks.Close())

			exported := o.exported()
			for _, present := range []string{"redlock.node.votes", "redlock.round", "no_quorum", span.SpanContext().TraceID().String()} {
				require.Contains(t, exported, present)
			}
			secret = append(secret, quoted, password, owner)
			absent(t, exported, secret...)
			absent(t, logged.String(), secret...)
		})
	}
}
