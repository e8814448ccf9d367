package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// order is a command of the library's on a key.
type order struct {
	verb       string // acquire, which a top-up is too, extend, release, stand or leave; empty for any other command
	key, value string
	fence      string // the fence's key; empty without fencing
	token      int64
	again      bool   // the key of a lock that is held is put back
	queue      string // the queue's key, and that of its flag; empty for what has nothing to do with them
	flag       string
	ticket     int64  // the place in the queue; 0: none
	channel    string // where whoever has that place is to be woken
	old        string // a value that is given back first
}

// What the keys of queues, and of the flags that tell of them, begin with.
const (
	queuePrefix = "redlock:queue:"
	flagPrefix  = "redlock:queued:"
	// wakePrefix is what the channels begin with on which those are woken who wait.
	wakePrefix = "redlock:wake:"
)

// fencePrefix is what the keys of fences begin with.
const fencePrefix = "redlock:fence:"

// markerKey is where the guard of a fresh client finds which server was there before.
const markerKey = "redlock:server"

// operation reads a command: SET, or a script with a key and our value, with a ttl if
// it extends, and with a fence, a token and how long to keep it where there are tokens.
// Releases, and what is about a queue, also name that and its flag.
func operation(command []string) (o order) {
	switch {
	case command[0] == "SET" && command[1] == markerKey: // the identity record, for the guard
		return order{}
	case command[0] == "SET" && len(command) >= 3:
		return order{verb: "acquire", key: command[1], value: command[2]}
	case !strings.HasPrefix(command[0], "EVAL"):
		return order{}
	}
	if len(command) > 5 && strings.HasPrefix(command[5], flagPrefix) {
		return queued(command)
	}
	if len(command) > 5 && strings.HasPrefix(command[4], flagPrefix) { // a release, of who did not wait
		queue := strings.Replace(command[4], flagPrefix, queuePrefix, 1)
		return order{verb: "release", key: command[3], queue: queue, flag: command[4], value: command[5]}
	}
	switch len(command) {
	case 5: // of a client of another library
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

// queued reads a command with the keys of a queue: a release, or what tries, stands or
// leaves by the queue. Anything else has a queue and no verb.
func queued(command []string) (o order) {
	o = order{key: command[3], queue: command[4], flag: command[5]}
	args := command[6:]
	if command[2] == "4" {
		o.fence, args = command[6], command[7:]
	}
	switch {
	case 0 < len(args) && len(args) < 4: // of who waited, with the name of his place and its ticket
		o.verb, o.value = "release", args[0]
		return o
	case len(args) > 5 && args[0] == "try":
		o.verb, o.value = "acquire", args[4]
	case len(args) > 3 && (args[0] == "stand" || args[0] == "leave"):
		o.verb = args[0]
	default:
		return o
	}
	id, _, _ := strings.Cut(args[1], " ")
	o.channel = wakePrefix + id
	o.ticket, _ = strconv.ParseInt(args[2], 10, 64)
	o.old = args[3]
	if o.fence != "" && len(args) > 6 {
		o.token, _ = strconv.ParseInt(args[6], 10, 64)
	}
	return o
}

// stood is a word for what a script of the queue replies: whether the key is ours now,
// in how many milliseconds that may change, how many are ahead of us, the highest
// ticket, the fence, and a digest of the holder's value.
func (o order) stood(reply []byte, heard bool) string {
	const granted, fenced = 1, 3
	var numbers []int64
	for _, line := range strings.Split(string(reply), "\r\n:")[1:] {
		n, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		numbers = append(numbers, n)
	}
	if len(numbers) != 6 {
		return "failed: no answer"
	}
	ahead := ""
	switch {
	case o.ticket > 0 && heard:
		ahead = fmt.Sprintf(": %s%d, %d ahead", stands, o.ticket, numbers[2])
	case o.ticket > 0:
		ahead = fmt.Sprintf(": passes, %d ahead", numbers[2])
	}
	switch {
	case o.verb == "leave":
		return "granted"
	case o.verb == "stand":
		return "granted" + ahead
	case numbers[0] == granted:
		return "granted"
	case numbers[0] == fenced:
		return fmt.Sprintf("refused: fence %d", numbers[4])
	}
	return "refused" + ahead
}

// stands is in the answer to whoever has a place in the queue now, and keeps it: whom
// nobody hears for when he is to be woken loses it. The ticket follows.
const stands = "in the queue by "

// said is a reply in a word, or with a reason. heard tells that somebody listens on the
// order's channel.
func (o order) said(reply []byte, heard bool) string {
	line, _, _ := strings.Cut(string(reply), "\r\n")
	if o.queue != "" && o.verb != "release" && !strings.HasPrefix(line, "-") {
		return o.stood(reply, heard)
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(line, ":"), 10, 64)
	switch {
	case line == "+OK" || line == ":1" || line == ":2" && o.verb == "release": // which has woken somebody
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

// proposal is what a server was asked to grant, for a node.
type proposal struct {
	node, server int
	value        string
	token        int64 // 0 without fencing
}

// fenced says what a command must not have done with a fence: it never goes down while
// the node remembers, and is passed by none but a higher token, or once more by the one
// that raised it, for the key that it was raised for. The world's mu is held.
func (w *world) fenced(o order, word string, node, server int, before stored, fence string, at time.Duration) (wrong string) {
	place := storage{server, o.fence}
	last := w.fences[place]
	now, err := strconv.ParseInt(fence, 10, 64)
	ours := before.value == o.value && before.until > at
	this := proposal{node, server, o.value, o.token}
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
	case w.proposed[this] && !w.extended[o.value] && o.ticket == 0: // who waits may be woken again
		wrong = "was sent again"
	}
	if o.verb == "acquire" {
		w.proposed[this] = true
	}
	w.fences[place] = now
	return wrong
}
