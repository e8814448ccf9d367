package terminal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBriefDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{"0s": 0, "59s": 59 * time.Second, "1m0s": time.Minute, "2h3m": 2*time.Hour + 3*time.Minute + 4*time.Second, "9d1h": 217 * time.Hour, "100d": 2400 * time.Hour} {
		assert.Equal(t, want, Brief(d))
	}
}
