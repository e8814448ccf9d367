package script

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Case 23: the hashes are constants, since builds that enforce FIPS 140 panic on SHA-1. After
// an edit of a script this test prints the new hash.
func TestScriptHashesArePinned(t *testing.T) {
	for name, s := range map[string]Script{"release.lua": Release, "retain.lua": Retain, "force.lua": Force, "extend.lua": Extend, "propose.lua": Propose, "queue.lua": Queue, "inspect.lua": Inspect} {
		sum := sha1.Sum([]byte(s.Text))
		assert.Equal(t, hex.EncodeToString(sum[:]), s.SHA1, name)
	}
}
