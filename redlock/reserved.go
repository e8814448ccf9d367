package redlock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorumlock/redlock/redlock/internal/errs"
	"github.com/quorumlock/redlock/redlock/internal/voter"
)

// guardPrefix is what package fence keeps tokens under, for keys of a Redis that may be
// one of the nodes.
const guardPrefix = "redlock:guard:"

// checkKey refuses the empty key, which is a caller's variable that was not set, and a key
// that this library keeps something else under.
func (c Config) checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("redlock: key is empty")
	case reserved(c.KeyPrefix + key):
		return fmt.Errorf("redlock: key %q is reserved: behind Config.KeyPrefix it is one of …%s, %s…, %s…, %s… and %s…, which this library keeps for itself",
			errs.Short(key), voter.RecordKey, fencePrefix, queuePrefix, flagPrefix, guardPrefix)
	}
	return nil
}

// reserved reports whether a lock that nodes have under name could meet what some client
// keeps for another purpose, whatever that client's Config.KeyPrefix. Fences, queues,
// their flags and guards' tokens begin with a prefix of their own. An identity record is
// behind a client's KeyPrefix, which can be any text, so every name that ends like one is
// the record of the clients whose KeyPrefix is the rest.
func reserved(name string) bool {
	for _, prefix := range [...]string{fencePrefix, queuePrefix, flagPrefix, guardPrefix} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, voter.RecordKey)
}
