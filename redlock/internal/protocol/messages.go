package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Wake is a message by which a node's script wakes a waiter; see wake.lua.
type Wake struct {
	NodeKey string
	Ticket  int64
	Second  bool // the waiter is second in the queue, and must look in case the first one is dead
	// Expires is positive if the key is not free yet: its holder has given it up, and it expires
	// after this time.
	Expires time.Duration
}

// ParseWake parses a message. It reports false for one that no script of this library sent.
func ParseWake(message string) (w Wake, ok bool) {
	message, w.Second = strings.CutPrefix(message, "~")
	if rest, expires := strings.CutPrefix(message, "="); expires {
		text, rest, _ := strings.Cut(rest, " ")
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms < 1 {
			return w, false
		}
		w.Expires, message = Duration(ms), rest
	}
	ticket, key, _ := strings.Cut(message, " ")
	n, err := strconv.ParseInt(ticket, 10, 64)
	w.Ticket, w.NodeKey = n, key
	return w, err == nil && key != ""
}

// Digest identifies a lock's value without revealing it.
type Digest [16]byte

// DigestOf returns the digest of a lock's value.
func DigestOf(value string) Digest {
	sum := sha256.Sum256([]byte(value))
	return Digest(sum[:len(Digest{})])
}

const (
	// brokenChannel is the channel on which nodes report that a lock was broken. It is no
	// Redlock's own channel, as the ids of those are hexadecimal.
	brokenChannel = "broken"
	brokenWord    = "broken " // precedes the digest
)

// BrokenChannel returns the channel, without slot.WakePrefix, on which a node reports that
// ForceRelease has broken a lock. That is rare, so all clients share one; a Cluster has one in
// each slot.
func BrokenChannel(nodeKey string, sharded bool) string {
	if sharded {
		return ShardChannel(brokenChannel, nodeKey)
	}
	return brokenChannel
}

// BrokenMessage returns the message that ForceRelease has deleted the key with this value.
func BrokenMessage(value string) string {
	d := DigestOf(value)
	return brokenWord + hex.EncodeToString(d[:])
}

// ParseBroken parses a message that a lock was broken. broken reports whether the text is such
// a message, and ok whether its digest is valid.
func ParseBroken(message string) (d Digest, broken, ok bool) {
	text, broken := strings.CutPrefix(message, brokenWord)
	if !broken || len(text) != hex.EncodedLen(len(d)) {
		return d, broken, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, true, err == nil
}
