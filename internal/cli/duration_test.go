package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDurationsOfFlags(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second, "0": 0, "-1": -time.Second,
		"1e3": 1000 * time.Second, "3ms": 3 * time.Millisecond,
	} {
		var d Duration
		assert.NoError(t, d.Set(text))
		assert.Equal(t, want, time.Duration(d), text)
	}
	for _, text := range []string{"", "soon", "1e30", "-1e30", "NaN", "Inf", "10 s", "redis://h"} {
		var d Duration
		assert.Error(t, d.Set(text), text)
	}
}
