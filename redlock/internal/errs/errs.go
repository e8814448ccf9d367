// Package errs holds what all rooms of package redlock need to word an error: sentinels,
// texts without the package's prefix, and a server's words without secrets.
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

// These are redlock.ErrHeld and so on, which say what each means.
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

// Inline wraps an error of the package for the middle of a message: it prints without the
// package's prefix.
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

// Op reports why an operation on a key failed without an answer from any node.
func Op(op, key string, cause error) error {
	return fmt.Errorf(prefix+"%s %q: %w", op, Short(key), Inline(cause))
}

// Scrub makes an error of a node fit to be shown. Servers quote the arguments of a command
// that they do not know, passwords and lock values among them: these are cut. An error that
// matches an ended context loses its type, or it would be taken for the caller's own.
func Scrub(err error, value string) error {
	msg := err.Error()
	clean := msg
	if i := strings.Index(clean, "with args"); i >= 0 {
		clean = strings.TrimRight(clean[:i], " ,")
	}
	// This finds other commands' values too, and values that were cut: nothing else in a
	// server's message looks like a UUID.
	clean = uuidLike().ReplaceAllLiteralString(clean, "…")
	if value != "" {
		clean = strings.ReplaceAll(clean, value, "…")
	}
	if clean != msg || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return errors.New(clean)
	}
	return err
}

// uuidLike is compiled on first use, as a program that ends soon would pay for it too.
var uuidLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]*`)
})

// Short cuts a key for a message: a key may be a megabyte.
func Short(key string) string {
	const enough = 100
	if len(key) <= enough {
		return key
	}
	return key[:enough] + "…"
}

// Answered reports whether err is a server's own reply, so that the command was not left
// half-way on the connection.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// Says reports whether err is a server's reply that begins with prefix.
func Says(err error, prefix string) bool {
	return err != nil && Answered(err) && strings.HasPrefix(err.Error(), prefix)
}
