package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of fault.
type Kind string

const (
	Delay      Kind = "delay"       // a path is slow, with a long tail
	Late       Kind = "late"        // what takes a path is executed after its round is over
	LoseAsk    Kind = "lose-ask"    // requests are lost, and their connections cut
	LoseReply  Kind = "lose-reply"  // requests are executed, and replies lost
	Tear       Kind = "tear"        // a batch is cut in the middle: a part is executed, or answered
	Partition  Kind = "partition"   // one client and one node, in one direction or both
	Refuse     Kind = "refuse"      // a node refuses one client's connections
	Break      Kind = "break"       // a client's connections to a node are cut once
	Hang       Kind = "hang"        // a node stands still, as at SIGSTOP
	Crash      Kind = "crash"       // a node is killed and comes back with its memory
	AmnesiaOK  Kind = "amnesia-ok"  // it comes back without, after the longest ttl
	Flush      Kind = "flush"       // a node loses its scripts
	JumpBack   Kind = "jump-back"   // a node's clock is set back: its keys live longer
	Pause      Kind = "pause"       // a client stands still, mostly longer than its validity
	Cancel     Kind = "cancel"      // callers give up in the middle
	Replace    Kind = "replace"     // a client's process ends, and another takes its place
	LoseWake   Kind = "lose-wake"   // what a node publishes for those who wait is lost
	LateWake   Kind = "late-wake"   // it arrives late
	Deafen     Kind = "deafen"      // a node's subscribers are cut off, and may not be let in again for a while
	Amnesia    Kind = "amnesia"     // a node comes back at once without its memory
	FailOver   Kind = "fail-over"   // a replica that has not heard of its locks takes a node's place
	FailBack   Kind = "fail-back"   // a node is a replica for a while, and has lost its memory by that
	JumpAhead  Kind = "jump-ahead"  // a node's clock is set forward: its keys die early
	SlowClient Kind = "slow-client" // a client's clock runs slower than its drift allows for
)

// Within lists the kinds that Redlock excludes under.
var Within = []Kind{
	Delay, Late, LoseAsk, LoseReply, Tear, Partition, Refuse, Break,
	Hang, Crash, AmnesiaOK, Flush, JumpBack, Pause, Cancel, Replace,
	LoseWake, LateWake, Deafen,
}

// Beyond lists the kinds under which Redlock, without an optional guard, is known
// not to exclude. docs/testing.md has a line and a seed for each.
var Beyond = []Kind{Amnesia, JumpAhead, SlowClient, FailOver, FailBack}

// apart are the kinds that are drawn by themselves, so that what was drawn before there
// were these stays as it was.
var apart = append([]Kind{Replace, FailOver, FailBack}, wakes...)

// wakes are the kinds that are about who waits being woken.
var wakes = []Kind{LoseWake, LateWake, Deafen}

// forgetful are the kinds by which a node forgets its keys and fences.
var forgetful = []Kind{Amnesia, AmnesiaOK, FailOver, FailBack}

func anyOf(kinds, of []Kind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return slices.Contains(of, k) })
}

// butFor lists the kinds that are not among those.
func butFor(kinds, those []Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return slices.Contains(those, k) })
}

// ParseKinds reads a list of kinds separated by commas. "within", "beyond" and "none"
// stand for lists.
func ParseKinds(s string) ([]Kind, error) {
	kinds := []Kind{}
	for name := range strings.SplitSeq(s, ",") {
		switch k := Kind(strings.TrimSpace(name)); {
		case k == "none" || k == "":
		case k == "within":
			kinds = append(kinds, Within...)
		case k == "beyond":
			kinds = append(kinds, Beyond...)
		case slices.Contains(Within, k) || slices.Contains(Beyond, k):
			kinds = append(kinds, k)
		default:
			return nil, fmt.Errorf("no fault is called %q; there are: %s; and within, beyond, none", name, names(append(Within, Beyond...)))
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
