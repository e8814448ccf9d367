package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// order is a command of the library on a key.
type order struct {
	verb       string // acquire (also for a top-up), extend, release, retain, stand or leave; empty for any other command
	key, value string
	fence      string // the fence's key; empty without fencing
	token      int64
	again      bool   // a top-up: it only puts the key of a held lock back
	queue      string // the queue's key; empty for a command that does not concern the queue
	flag       string
	ticket     int64  // of the queue entry; 0: none
	channel    string // the channel on which the waiter with that entry is woken
	old        string // an earlier value of ours, whose key is deleted first
}

// The prefixes of the keys of queues, and of the flags that show that there is a queue.
const (
	queuePrefix = "redlock:queue:"
	flagPrefix  = "redlock:queued:"
	// wakePrefix is the prefix of the channels on which waiters are woken.
	wakePrefix = "redlock:wake:"
)

// fencePrefix is the prefix of the keys of fences.
const fencePrefix = "redlock:fence:"

// recordKey is the key of the identity record, which tells the guard of a fresh client
// which server was there before.
const recordKey = "redlock:server"

// operation reads a command: SET, or a script with a key and a value. Extensions add a ttl,
// and with fencing also a fence, a token and how long to keep the fence. Releases and the
// commands on a queue add the flag, and mostly the queue.
func operation(command []string) (o order) {
	switch {
	case command[0] == "SET" && command[1] == recordKey: // the identity record
		return order{}
	case command[0] == "SET" && len(command) >= 3:
		return order{verb: "acquire", key: command[1], value: command[2]}
	case !strings.HasPrefix(command[0], "EVAL"):
		return order{}
	}
	if len(command) > 5 && strings.HasPrefix(command[5], flagPrefix) {
		return queued(command)
	}
	if len(command) > 5 && strings.HasPrefix(command[4], flagPrefix) { // a release by a client that did not wait
		queue := strings.Replace(command[4], flagPrefix, queuePrefix, 1)
		o = order{verb: "release", key: command[3], queue: queue, flag: command[4], value: command[5]}
		if len(command) == 7 { // a ReleaseAfter, with its time
			o.verb = "retain"
		}
		return o
	}
	switch len(command) {
	case 5: // a release by a client of another library
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

// queued reads a command that names a queue: a release, or a command that tries, stands or
// leaves. For anything else it returns an order with a queue and no verb.
func queued(command []string) (o order) {
	o = order{key: command[3], queue: command[4], flag: command[5]}
	args := command[6:]
	if command[2] == "4" {
		o.fence, args = command[6], command[7:]
	}
	switch {
	case 0 < len(args) && len(args) < 4: // a release by a client that waited, with the name and the ticket of its queue entry
		o.verb, o.value = "release", args[0]
		return o
	case len(args) > 5 && args[0] == "try":
		o.verb, o.value = "acquire", args[4]
	case len(args) > 3 && (args[0] == "enqueue" || args[0] == "dequeue"):
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

// stood puts the reply of a queue script into words. The reply is six numbers: whether the
// key is ours now, in how many milliseconds that may change, how many waiters are ahead of
// us, the highest ticket, the fence, and a digest of the holder's value.
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
	case o.verb == "dequeue":
		return "granted"
	case o.verb == "enqueue":
		return "granted" + ahead
	case numbers[0] == granted:
		return "granted"
	case numbers[0] == fenced:
		return fmt.Sprintf("refused: fence %d", numbers[4])
	}
	return "refused" + ahead
}

// stands is in the answer to a waiter that keeps its queue entry; the ticket follows. A
// waiter without a subscriber loses its entry when it is to be woken.
const stands = "in the queue by "

// said puts a reply into a word, with a reason if there is one. heard reports that there is
// a subscriber on the order's channel.
func (o order) said(reply []byte, heard bool) string {
	line, _, _ := strings.Cut(string(reply), "\r\n")
	if o.queue != "" && o.verb != "release" && o.verb != "retain" && !strings.HasPrefix(line, "-") {
		return o.stood(reply, heard)
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(line, ":"), 10, 64)
	switch {
	case line == "+OK" || line == ":1" || line == ":2" && o.verb == "release": // 2: the release has woken a waiter
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

// proposal is a value and a token that a server was asked to grant for a node.
type proposal struct {
	node, server int
	value        string
	token        int64 // 0 without fencing
}

// fenced returns what a command did wrong with a fence, or "". A fence never goes down
// while the node remembers. Only a higher token passes it, or again the token that raised
// it while that lock has the key. A client that does not wait proposes a token to a server
// once. The world's mu is held.
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
	case w.proposed[this] && !w.extended[o.value] && o.ticket == 0: // a waiter may be woken again
		wrong = "was sent again"
	}
	if o.verb == "acquire" {
		w.proposed[this] = true
	}
	w.fences[place] = now
	return wrong
}
