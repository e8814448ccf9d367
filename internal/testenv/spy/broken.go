package spy

import (
	"crypto/sha256"
	"encoding/hex"
)

// BrokenChannel is the channel on which nodes report that ForceRelease has deleted a lock.
const BrokenChannel = "redlock:wake:broken"

// Broken returns the message about the lock with this value.
func Broken(value string) string {
	sum := sha256.Sum256([]byte(value))
	return "broken " + hex.EncodeToString(sum[:16])
}
