package protocol

import (
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock/internal/errs"
)

// Seen is the decoded reply of inspect.lua about a key.
type Seen struct {
	Value   *string       // nil: the key is free
	TTL     time.Duration // 0 if the key is free, negative if it does not expire
	Waiting int           // entries in the queue; -1 if the user may not read it, or it is no queue
	Fence   int64         // 0 if there is none; -1 if the user may not read it, or it is no token
}

// OtherTypeError reports that the key is of another type than a lock's.
type OtherTypeError struct{ kind string } // the type as TYPE names it; "" if unknown

func (e *OtherTypeError) Error() string {
	return "has " + e.Name() + " under this key, which is not a lock"
}
func (e *OtherTypeError) Unwrap() error { return errs.Foreign }

// Name returns the type with its article.
func (e *OtherTypeError) Name() string {
	switch {
	case e.kind == "":
		return "something of another type"
	case !typeName().MatchString(e.kind):
		return "something of a module's type"
	}
	return "a " + e.kind
}

var typeName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{1,20}$`) })

// decodeInspection decodes the reply of inspect.lua. It accepts the reply of a node whose votes
// do not count, unless the node is a duplicate of another.
func decodeInspection(reply any, ineligible error) (r Reply, ok bool) {
	seen, other, ok := parseInspection(reply)
	switch {
	case !ok:
		return r, false
	case errors.Is(ineligible, errs.DuplicateNode):
		return refused(0, ineligible), true
	case other != nil:
		return refused(0, other), true
	}
	return Reply{Vote: quorum.Granted, Seen: &seen}, true
}

// otherType is the value in the reply if the key is of another type.
const otherType = 1

func parseInspection(reply any) (s Seen, other *OtherTypeError, ok bool) {
	all, _ := reply.([]any)
	if len(all) != 5 {
		return s, nil, false
	}
	left, ok1 := all[1].(int64)
	waiting, ok2 := all[2].(int64)
	fence, ok3 := all[3].(int64)
	kind, ok4 := all[4].(string)
	if !ok1 || !ok2 || !ok3 || !ok4 || left < -1 || waiting < -1 || fence < -1 {
		return s, nil, false
	}
	switch value := all[0].(type) {
	case nil:
		return Seen{Waiting: int(waiting), Fence: fence}, nil, true
	case string:
		return Seen{Value: &value, TTL: Duration(left), Waiting: int(waiting), Fence: fence}, nil, true
	case int64:
		return s, &OtherTypeError{kind}, value == otherType
	}
	return s, nil, false
}
