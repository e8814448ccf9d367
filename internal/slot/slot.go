// Package slot names keys that must be in the same slot of a Redis Cluster as another key.
package slot

import (
	"strings"
	"sync"
)

// slots is the number of slots of a Redis Cluster.
const slots = 16384

// Sibling returns a key that is always in the same slot as key, whatever braces key has, and
// that is no other key's sibling. prefix says what it is for; it must not have braces.
//
// A key with a hash tag keeps it. A key without a closing brace is wrapped in braces. Any
// other key gets a hash tag of its slot in front. The character after the prefix tells the
// first kind from the others, and the number of closing braces tells the second from the
// third.
func Sibling(prefix, key string) string {
	switch {
	case hashed(key) != key:
		return prefix + ":" + key
	case !strings.Contains(key, "}"):
		return prefix + "{" + key + "}"
	default:
		return prefix + "{" + Tag(key) + "}" + key
	}
}

// Of returns the slot of key.
func Of(key string) int { return int(crc16(hashed(key))) % slots }

// Tag returns a hash tag that puts a name into the slot of key.
func Tag(key string) string { return tags()[Of(key)] }

// Tags returns a hash tag for each slot.
func Tags() *[slots]string { return tags() }

// hashed returns the part of a key that decides its slot: the text between the first { and the
// next }, or the whole key if that text is missing or empty
// (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags).
func hashed(key string) string {
	_, after, found := strings.Cut(key, "{")
	if tag, _, closed := strings.Cut(after, "}"); found && closed && tag != "" {
		return tag
	}
	return key
}

// crc16 is CRC-16/XMODEM, the hash of a Redis Cluster.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// tags has a short hash tag for each slot.
var tags = sync.OnceValue(func() *[slots]string {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyz"
	var tags [slots]string
	missing := slots
	for n := 0; missing > 0; n++ {
		tag := ""
		for rest := n; ; rest /= len(letters) {
			tag += letters[rest%len(letters) : rest%len(letters)+1]
			if rest < len(letters) {
				break
			}
		}
		if s := Of(tag); tags[s] == "" {
			tags[s] = tag
			missing--
		}
	}
	return &tags
})
