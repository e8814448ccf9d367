package fence

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// maxToken is the highest token that Lua, whose numbers are doubles, distinguishes from
	// the next. SQL has no such limit. There the limit keeps a number that is no token from
	// shutting out all later holders.
	maxToken = 1<<53 - 1

	// maxResource is the longest name of a resource, in bytes. A primary key of every MySQL
	// may have 767 bytes; 255 is easier to remember.
	maxResource = 255
)

func checkToken(token int64) error {
	if token < 1 || token > maxToken {
		return fmt.Errorf("fence: token %d is not from 1 to 2^53-1 (was the lock taken with redlock.Config.Fencing?)", token)
	}
	return nil
}

// checkResource refuses a name that one of the databases would cut, refuse or merge with
// another name, so that a name that works with one database works with all.
func checkResource(resource string) error {
	switch {
	case resource == "":
		return errors.New("fence: resource is empty")
	case len(resource) > maxResource:
		return fmt.Errorf("fence: resource %q has %d bytes, more than %d", short(resource), len(resource), maxResource)
	case !utf8.ValidString(resource):
		return fmt.Errorf("fence: resource %q is not valid UTF-8", resource)
	case strings.ContainsRune(resource, 0):
		return fmt.Errorf("fence: resource %q contains a NUL", resource)
	}
	return nil
}

// plainTable matches a name that means the same in each dialect without quotes. PostgreSQL
// silently cuts names after 63 bytes. The counts make the expression take 0.2 to 0.35 ms to
// compile, so it is compiled when it is first used.
var plainTable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}\z`)
})

func checkTable(table string) error {
	if !plainTable().MatchString(table) {
		return fmt.Errorf("fence: table %q is not a name or schema.name of ASCII letters, digits and _, of at most 63 each", short(table))
	}
	return nil
}
