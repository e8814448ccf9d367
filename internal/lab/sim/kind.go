package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of fault.
type Kind string

const (
	Delay          Kind = "delay"           // a path is slow, with a long tail
	Late           Kind = "late"            // requests arrive late, mostly after their round is over, and are executed
	LoseAsk        Kind = "lose-ask"        // requests are lost, and their connections are cut
	LoseReply      Kind = "lose-reply"      // requests are executed, and their replies are lost
	Tear           Kind = "tear"            // a batch is cut in the middle: a part of it is executed, or answered
	Partition      Kind = "partition"       // nothing passes between one client and one node, in one direction or both
	Refuse         Kind = "refuse"          // a node refuses one client's connections
	Break          Kind = "break"           // a client's connections to a node are cut once
	Hang           Kind = "hang"            // a node stands still, as at SIGSTOP
	Crash          Kind = "crash"           // a node is killed and comes back with its memory
	AmnesiaOK      Kind = "amnesia-ok"      // a node comes back without its memory, after the longest ttl
	Flush          Kind = "flush"           // a node loses its scripts
	JumpBack       Kind = "jump-back"       // a node's clock is set back: its keys live longer
	Pause          Kind = "pause"           // a client stands still, mostly for longer than its locks are valid
	Cancel         Kind = "cancel"          // callers give up in the middle
	Replace        Kind = "replace"         // a client's process ends, and another takes its place
	LoseWake       Kind = "lose-wake"       // the messages by which a node wakes waiters are lost
	LateWake       Kind = "late-wake"       // the messages by which a node wakes waiters arrive late
	Deafen         Kind = "deafen"          // a node's subscribers are cut off, and may be refused for a while
	LockOut        Kind = "lock-out"        // a node does not accept any client's password for a while
	Amnesia        Kind = "amnesia"         // a node comes back at once without its memory
	FailOver       Kind = "fail-over"       // a replica that lacks the latest locks takes a node's place
	FailBack       Kind = "fail-back"       // a node is a replica for a while, and is promoted without its memory
	JumpAhead      Kind = "jump-ahead"      // a node's clock is set forward: its keys die early
	EmptyPromotion Kind = "empty-promotion" // a node restarts without its memory, and a replica of it takes its place
	Excursion      Kind = "excursion"       // a node's address goes to an independent server, and comes back
	Spare          Kind = "spare"           // a node's address goes to an independent server for good
	Deposed        Kind = "deposed"         // a replica takes a node's place, and the old master goes on granting for a while
	DeposedLong    Kind = "deposed-long"    // the same, but the old master goes on for longer than the guard allows for
	LateInfo       Kind = "late-info"       // a node's answer about its identity is late: it has since been a replica and lost its memory
	Duplicate      Kind = "duplicate"       // a node's address leads to another node's server for a while
	SlowClient     Kind = "slow-client"     // a client's clock runs slower than its drift allows for
)

// Within lists the kinds of faults under which Redlock keeps locks exclusive.
var Within = []Kind{
	Delay, Late, LoseAsk, LoseReply, Tear, Partition, Refuse, Break,
	Hang, Crash, AmnesiaOK, Flush, JumpBack, Pause, Cancel, Replace,
	LoseWake, LateWake, Deafen, LockOut, Duplicate,
}

// Beyond lists the kinds of faults under which Redlock, without an optional guard, is known
// not to keep them exclusive. docs/testing.md shows each with a seed or a command.
var Beyond = []Kind{
	Amnesia, JumpAhead, SlowClient, FailOver, FailBack,
	EmptyPromotion, Excursion, Spare, Deposed, DeposedLong, LateInfo,
}

// apart lists the kinds that have random streams of their own, so that adding them did not
// change what a seed draws of the other kinds.
var apart = slices.Concat([]Kind{Replace, FailOver, FailBack, LockOut}, wakes, moves, Trials)

// wakes lists the kinds that disturb how waiters are woken.
var wakes = []Kind{LoseWake, LateWake, Deafen}

// moves lists the kinds by which another server comes behind a node's address, or the same
// one with another history.
var moves = []Kind{Duplicate, EmptyPromotion, Excursion, Spare, Deposed, DeposedLong, LateInfo}

// takingOver lists the kinds by which a spare server takes an address over.
var takingOver = []Kind{Excursion, Spare, Deposed, DeposedLong}

// forgetful lists the kinds by which a node forgets its keys and fences.
var forgetful = append([]Kind{Amnesia, AmnesiaOK, FailOver, FailBack}, moves[1:]...)

func anyOf(kinds, of []Kind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return slices.Contains(of, k) })
}

// butFor returns kinds without those.
func butFor(kinds, those []Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return slices.Contains(those, k) })
}

// ParseKinds reads a list of kinds separated by commas. "within", "beyond", "trials" and
// "none" stand for lists. It fails on any other name.
func ParseKinds(s string) ([]Kind, error) {
	kinds := []Kind{}
	for name := range strings.SplitSeq(s, ",") {
		switch k := Kind(strings.TrimSpace(name)); {
		case k == "none" || k == "":
		case k == "within":
			kinds = append(kinds, Within...)
		case k == "beyond":
			kinds = append(kinds, Beyond...)
		case k == "trials":
			kinds = append(kinds, Trials...)
		case slices.Contains(slices.Concat(Within, Beyond, Trials), k):
			kinds = append(kinds, k)
		default:
			return nil, fmt.Errorf("no fault is called %q; there are: %s; and within, beyond, trials, none", name, names(slices.Concat(Within, Beyond, Trials)))
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), nil
}

func names(kinds []Kind) string {
	s := make([]string, len(kinds))
	for i, k := range kinds {
		s[i] = string(k)
	}
	return strings.Join(s, ",")
}
