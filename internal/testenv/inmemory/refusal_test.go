package inmemory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

func TestRefuseCommands(t *testing.T) {
	ctx := context.Background()
	m := inmemory.Start(t, 1).Master(0)
	before := m.Client()
	require.NoError(t, before.Set(ctx, "key", "value", 0).Err())
	const says = "WRONGPASS invalid username-password pair or user is disabled."
	m.RefuseCommands(says)
	assert.EqualError(t, before.Del(ctx, "key").Err(), says, "on a connection that was there")
	assert.ErrorContains(t, m.Client().Del(ctx, "key").Err(), "WRONGPASS", "on a new one")
	assert.NoError(t, m.FlushScripts(), "which is no client's command")
	m.RefuseCommands("")
	assert.Equal(t, "value", before.Get(ctx, "key").Val())
}
