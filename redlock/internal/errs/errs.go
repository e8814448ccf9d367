// Package errs words the errors of package redlock and of its internal packages: sentinels,
// texts without the package's prefix, and servers' messages without secrets.
package errs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Package redlock exports these as redlock.ErrHeld and so on, and documents each there.
var (
	Held          error = Sentinel("held by another client")
	NotHeld       error = Sentinel("no longer held")
	Foreign       error = Sentinel("not a lock of this library")
	DuplicateNode error = Sentinel("one node is listed twice")
)

const prefix = "redlock: "

// Sentinel is an error for errors.Is. It prints with the package's prefix.
type Sentinel string

func (s Sentinel) Error() string { return prefix + string(s) }

// Inline wraps an error of the package for the middle of a message: the result prints without
// the package's prefix.
func Inline(err error) error { return inline{err} }

type inline struct{ error }

func (e inline) Error() string { return Text(e.error) }
func (e inline) Unwrap() error { return e.error }

// Text returns the text of err without the package's prefix.
func Text(err error) string {
	if err == nil {
		return "no reason given"
	}
	return strings.TrimPrefix(err.Error(), prefix)
}

// Op returns the error of an operation on a key that failed without an answer from any node.
func Op(op, key string, cause error) error {
	return fmt.Errorf(prefix+"%s %q: %w", op, Short(key), Inline(cause))
}

// Scrub removes secrets, such as value, from a node's error. Servers quote the arguments of an
// unknown command, which may be passwords or lock values: these are cut. An error that matches
// an ended context loses its type, as it would be taken for the end of the caller's own
// context.
func Scrub(err error, value string) error {
	msg := err.Error()
	clean := msg
	if i := strings.Index(clean, "with args"); i >= 0 {
		clean = strings.TrimRight(clean[:i], " ,")
	}
	if value != "" {
		clean = strings.ReplaceAll(clean, value, "…")
	}
	// This also removes values of other commands, and truncated values: nothing else in a
	// server's message looks like a UUID. An owner's label behind it may stay.
	clean = uuidLike().ReplaceAllLiteralString(clean, "…")
	if clean != msg || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.New(clean)
	}
	return err
}

// uuidLike is compiled on first use, so that a program that ends soon does not pay for it.
var uuidLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]*`)
})

// Short shortens a key for a message, as a key may be a megabyte.
func Short(key string) string {
	const enough = 100
	if len(key) <= enough {
		return key
	}
	return key[:enough] + "…"
}

// Answered reports whether err is a server's own reply. If so, no command was left half-way on
// the connection.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Says reports whether err is a server's reply that begins with prefix.
func Says(err error, prefix string) bool {
	return err != nil && Answered(err) && strings.HasPrefix(err.Error(), prefix)
}
