// Package handle encodes and decodes the text by which a detached lock is handed over. It does no
// I/O. Its errors never quote the text, which is a secret.
//
// A handle is "redlock1." and the base64url encoding, without padding, of the fields and a sum. The
// number is the version of the format. The fields are, in this order: Config.KeyPrefix, the key and
// the value, each with its length in front; the fencing token, the ttl and Left, the last two in
// milliseconds. Numbers and lengths are varints as in package encoding/binary. The sum is the first
// eight bytes of the SHA-256 of the version and the fields. It detects damage, such as a text that
// was cut. It is no protection against forgery, and needs to be none: a client that can make a handle
// knows the value, and can use the lock without one.
package handle

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// Handle is what another process needs to go on with a lock.
type Handle struct {
	Prefix string        // the Config.KeyPrefix of the Redlock that had the lock
	Key    string        // as the caller names it
	Value  string        // the lock's value
	Token  int64         // the fencing token; 0: none
	TTL    time.Duration // the last one asked for
	Left   time.Duration // from the end of the lock here, how long one of its keys may live at most
}

const (
	version = "redlock1."
	sumSize = 8

	// MaxText is the length of the longest handle, and MaxName the sum of the lengths of the
	// longest prefix, key and value.
	MaxText = 16 << 10
	MaxName = 11 << 10
)

// The reasons why a text is no usable handle.
var (
	ErrEmpty   = errors.New("is empty")
	ErrForeign = errors.New("is not one that Detach has made")
	ErrVersion = errors.New("has a format that this version of the library does not know")
	ErrDamaged = errors.New("is damaged or incomplete")
	ErrLong    = errors.New("is too long")
)

var encoding = base64.RawURLEncoding.Strict()

// Encode returns the handle's text. The error is ErrLong if prefix, key and value together are
// longer than MaxName. Fractions of a millisecond are rounded up in Left, and cut off in TTL.
func (h Handle) Encode() (string, error) {
	if len(h.Prefix)+len(h.Key)+len(h.Value) > MaxName {
		return "", ErrLong
	}
	b := []byte(version)
	for _, s := range []string{h.Prefix, h.Key, h.Value} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	b = binary.AppendUvarint(b, uint64(max(h.Token, 0)))
	b = binary.AppendUvarint(b, uint64(max(h.TTL, 0)/time.Millisecond))
	left := max(h.Left, 0)
	millis := int64(left / time.Millisecond)
	if left%time.Millisecond > 0 && millis < mostMillis {
		millis++
	}
	b = binary.AppendUvarint(b, uint64(millis))
	b = append(b, sum(b)...)
	return version + encoding.EncodeToString(b[len(version):]), nil
}

// Decode returns the handle of a text. The text must be exactly what Encode returns for it.
func Decode(text string) (Handle, error) {
	rest, known := strings.CutPrefix(text, version)
	switch {
	case text == "":
		return Handle{}, ErrEmpty
	case len(text) > MaxText:
		return Handle{}, ErrLong
	case !known && otherVersion(text):
		return Handle{}, ErrVersion
	case !known:
		return Handle{}, ErrForeign
	}
	b, err := encoding.DecodeString(rest)
	if err != nil || len(b) < sumSize || strings.ContainsAny(rest, "\r\n") { // which encoding skips
		return Handle{}, ErrDamaged
	}
	fields, sent := b[:len(b)-sumSize], b[len(b)-sumSize:]
	if !bytes.Equal(sum(append([]byte(version), fields...)), sent) {
		return Handle{}, ErrDamaged
	}

	// From here on only a handle that this package did not make is wrong.
	r := reader{rest: fields}
	h := Handle{Prefix: r.text(), Key: r.text(), Value: r.text()}
	h.Token = r.number(1<<63 - 1)
	h.TTL = time.Duration(r.number(mostMillis)) * time.Millisecond
	h.Left = time.Duration(r.number(mostMillis)) * time.Millisecond
	if r.failed || len(r.rest) > 0 || h.Key == "" || h.Value == "" {
		return Handle{}, ErrForeign
	}
	if again, err := h.Encode(); err != nil || again != text {
		return Handle{}, ErrForeign // a number that is written longer than needed
	}
	return h, nil
}

// mostMillis is the longest Duration in milliseconds.
const mostMillis = int64((1<<63 - 1) / time.Millisecond)

// otherVersion reports whether the text looks like a handle of another version.
func otherVersion(text string) bool {
	digits, _, dot := strings.Cut(strings.TrimPrefix(text, "redlock"), ".")
	return dot && strings.HasPrefix(text, "redlock") && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func sum(b []byte) []byte {
	all := sha256.Sum256(b)
	return all[:sumSize]
}

// reader takes fields from the front of rest. After a field that is not there it only fails.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) number(most int64) int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(most) {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *reader) text() string {
	n := r.number(MaxName)
	if r.failed || n > int64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}
