package redlock

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Case 23: the hashes are constants, since builds that enforce FIPS 140 panic on
// SHA-1. A script that is edited needs its new hash: this test says which.
func TestScriptHashesArePinned(t *testing.T) {
	for name, s := range map[string]script{"release.lua": releaseScript, "force.lua": forceScript, "extend.lua": extendScript, "propose.lua": proposeScript, "queue.lua": queueScript, "inspect.lua": inspectScript} {
		sum := sha1.Sum([]byte(s.text))
		assert.Equal(t, hex.EncodeToString(sum[:]), s.sha1, name)
	}
}
