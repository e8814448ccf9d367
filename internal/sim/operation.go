package sim

import (
	"strconv"
	"strings"
	"time"
)

// order is a command of the library's on a key.
type order struct {
	verb       string // acquire, which a top-up is too, extend or release; empty for any other command
	key, value string
	fence      string // the fence's key; empty without fencing
	token      int64
	again      bool // the key of a lock that is held is put back
}

// fencePrefix is what the keys of fences begin with.
const fencePrefix = "redlock:fence:"

// markerKey is where the guard of a fresh client finds which server was there before.
const markerKey = "redlock:server"

// operation reads a command: SET, or a script with a key and our value, with a ttl if
// it extends, and with a fence, a token and how long to keep it where there are tokens.
func operation(command []string) (o order) {
	switch {
	case command[0] == "SET" && command[1] == markerKey: // who is there, for the guard
		return order{}
	case command[0] == "SET" && len(command) >= 3:
		return order{verb: "acquire", key: command[1], value: command[2]}
	case !strings.HasPrefix(command[0], "EVAL"):
		return order{}
	}
	switch len(command) {
	case 5:
		return order{verb: "release", key: command[3], value: command[4]}
	case 6:
		return order{verb: "extend", key: command[3], value: command[4]}
	case 9, 10:
		o = order{verb: "extend", key: command[3], fence: command[4], value: command[5]}
		o.token, _ = strconv.ParseInt(command[7], 10, 64)
		if len(command) == 10 {
			o.verb, o.again = "acquire", command[9] == "1"
		}
	}
	return o
}

// said is a reply in a word, or with a reason.
func (o order) said(reply []byte) string {
	line, _, _ := strings.Cut(string(reply), "\r\n")
	number, err := strconv.ParseInt(strings.TrimPrefix(line, ":"), 10, 64)
	switch {
	case line == "+OK" || line == ":1":
		return "granted"
	case strings.HasPrefix(line, "-"):
		return "failed: " + line[1:]
	case err != nil || number == 0:
	case o.fence != "" && o.verb == "acquire" && number > 1:
		return "refused: fence " + strconv.FormatInt(number, 10)
	case o.verb == "release" && number < 0:
		return "refused: " + (time.Duration(-number) * time.Millisecond).String() + " left"
	}
	return "refused"
}

// proposal is a token that a node was asked to grant.
type proposal struct {
	node  int
	value string
	token int64
}

// fenced says what a command must not have done with a fence: it never goes down while
// the node remembers, and is passed by none but a higher token, or once more by the one
// that raised it, for the key that it was raised for. The world's mu is held.
func (w *world) fenced(o order, word string, node int, before stored, fence string, at time.Duration) (wrong string) {
	place := storage{node, o.fence}
	last := w.fences[place]
	now, err := strconv.ParseInt(fence, 10, 64)
	ours := before.value == o.value && before.until > at
	this := proposal{node, o.value, o.token}
	switch {
	case fence != "" && err != nil:
		return "left a fence that is no token: " + fence
	case now < last:
		wrong = "lowered the fence"
	case word == "granted" && now < o.token:
		wrong = "was granted, and did not raise the fence"
	case o.verb != "acquire" || o.again:
	case word == "granted" && o.token <= last && !(o.token == last && ours):
		wrong = "was granted a token that is not above the fence"
	case w.proposed[this] && !w.extended[o.value]:
		wrong = "was sent again"
	}
	if o.verb == "acquire" {
		w.proposed[this] = true
	}
	w.fences[place] = now
	return wrong
}
