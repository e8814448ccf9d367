package plain

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// Line returns the text of err as one line for stderr, without credentials: errors of flags quote
// the argument, which may be a URL that was meant for another flag.
func Line(err error) string {
	msg := strings.TrimPrefix(err.Error(), "redlock: ")
	msg = strings.ReplaceAll(msg, "\n", "; ") // errors.Join
	msg = phrases().Replace(dialled().ReplaceAllLiteralString(msg, ""))
	return credentials().ReplaceAllLiteralString(Printable(msg), "://...@")
}

// The expressions are compiled on first use, as a program that ends soon would pay for them too.
var (
	// credentials matches everything between a scheme and the last @. It is greedy, as a
	// password that was not encoded may hold any character.
	credentials = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://.*@`) })

	// dialled matches the address that was dialled, which the message has named before.
	dialled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bdial (tcp|unix) \S+: `) })

	// phrases replaces the words of Go's own errors inside a message. Error words them while
	// they still have their types.
	phrases = sync.OnceValue(func() *strings.Replacer {
		return strings.NewReplacer(
			"context deadline exceeded", "the time was over",
			"context canceled", "interrupted",
			"i/o timeout", "no answer in time",
			"dial tcp: ", "", "dial unix: ", "",
		)
	})
)

// Printable replaces the characters with which a server's text could drive the terminal.
func Printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, s)
}

// Reason returns err without the operation and the file that it names.
func Reason(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
