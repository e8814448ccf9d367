// Package label writes and reads the value of a lock, which has three parts: a random UUID, which
// only the holder knows; when the value was made; and the owner's label, for people.
//
//	f1b2c3d4-0123-4abc-8def-0123456789ab 1790000000 web-3 pid 4711
//
// The UUID alone decides who the owner is. A value without the other two parts is one, too, as
// other programs write.
package label

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxLength is the longest label, in bytes: room for the longest host name, which has 64 on Linux,
// and as much again.
const MaxLength = 128

// randomLength is the length of a UUID as text.
const randomLength = 36

// latest is the last second of the year 9999: a time beyond it cannot be written as JSON.
const latest = 253402300799

// Check returns why owner is no label; nil if it is one. A label can be printed on a terminal as
// it is: it has no control characters, nor others that cannot be printed.
func Check(owner string) error {
	switch {
	case len(owner) > MaxLength:
		return fmt.Errorf("has %d bytes, more than %d", len(owner), MaxLength)
	case !utf8.ValidString(owner):
		return errors.New("is not valid UTF-8")
	}
	for _, c := range owner {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("has the character %U, which cannot be printed", c)
		}
	}
	return nil
}

// Default returns the label of this process: the name of its host, and its id.
func Default() string {
	host, err := os.Hostname()
	if err != nil || host == "" || len(host) > MaxLength/2 || Check(host) != nil {
		host = "unknown host"
	}
	return host + " pid " + strconv.Itoa(os.Getpid())
}

// Value returns the value of a lock of this owner, made at a time.
func Value(random uuid.UUID, at time.Time, owner string) string {
	text := make([]byte, 0, randomLength+len(" 253402300799 ")+MaxLength) // a constant, to keep it on the stack
	for i, b := range random {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, []byte{b})
	}
	text = append(text, ' ')
	text = strconv.AppendInt(text, min(max(at.Unix(), 0), latest), 10)
	text = append(text, ' ')
	text = append(text, owner...)
	return string(text)
}

// Label is what a value shows to people.
type Label struct {
	Owner string    // "" if the value has no label
	Since time.Time // when the value was made, by its owner's clock, in whole seconds; zero if the value does not say
}

// Read returns the label of a value. ok reports whether the value has the form of a lock's.
func Read(value string) (l Label, ok bool) {
	if len(value) < randomLength || uuid.Validate(value[:randomLength]) != nil {
		return l, false
	}
	rest := value[randomLength:]
	if rest == "" {
		return l, true
	}
	parts := strings.SplitN(rest, " ", 3)
	if len(parts) != 3 || parts[0] != "" || Check(parts[2]) != nil {
		return l, false
	}
	seconds, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || seconds < 0 || seconds > latest || strconv.FormatInt(seconds, 10) != parts[1] {
		return l, false
	}
	return Label{Owner: parts[2], Since: time.Unix(seconds, 0)}, true
}
