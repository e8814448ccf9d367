package masters

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Keys that may stay hide no others. Where nothing may stay, they are reported too.
func TestWhatIsLeftIsFound(t *testing.T) {
	set := Start(t, 3)
	ctx := t.Context()
	put := func(key string) { require.NoError(t, set.Client(1).Set(ctx, key, 1, time.Hour).Err()) }

	require.NoError(t, set.AwaitEmpty(ctx, 0))
	put("fence:{a}")
	require.NoError(t, set.AwaitOnly(ctx, []string{"mark", "fence:"}, 0))
	err := set.AwaitEmpty(ctx, 0)
	require.ErrorIs(t, err, ErrLeft)
	assert.ErrorContains(t, err, "[0 1 0], such as fence:{a}")

	put("a")
	put("fence:{b}")
	err = set.AwaitOnly(ctx, []string{"mark", "fence:"}, 0)
	require.ErrorIs(t, err, ErrLeft)
	assert.ErrorContains(t, err, "[0 1 0], such as a")
	require.NoError(t, set.Flush(ctx))
	require.NoError(t, set.AwaitEmpty(ctx, 0))
}
