package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEachVariantIsMeasured(t *testing.T) {
	var out strings.Builder
	require.NoError(t, measure(t.Context(), 1, 4, 10*time.Millisecond, &out))
	for _, name := range []string{"none", "none again", "counts", "redlockotel"} {
		assert.Contains(t, out.String(), "\n"+name+" ")
	}
}
