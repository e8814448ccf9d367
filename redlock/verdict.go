package redlock

import (
	"errors"
	"fmt"
)

// Verdict is what the nodes' answers to an inspection come to.
type Verdict uint8

const (
	// VerdictUnknown: it depends on nodes that could not tell whether a lock has a
	// majority, or the key is free on one.
	VerdictUnknown Verdict = iota
	// VerdictFree: a majority has no such key, so that nobody holds it, and whoever
	// comes next can. A minority may have what somebody left behind.
	VerdictFree
	// VerdictHeld: a majority has one value.
	VerdictHeld
	// VerdictSplit: neither, whatever the nodes that could not tell would say. Several
	// contenders have a part each, or one has lost its majority. Nobody holds it, and
	// nobody can before some of that expires.
	VerdictSplit
	// VerdictForeign: the key is of another type on so many nodes that nobody can acquire
	// a lock under its name until somebody deletes it.
	VerdictForeign
)

func (v Verdict) String() string {
	switch v {
	case VerdictUnknown:
		return "unknown"
	case VerdictFree:
		return "free"
	case VerdictHeld:
		return "held"
	case VerdictSplit:
		return "split"
	case VerdictForeign:
		return "foreign"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Verdict sums the nodes' answers up. They are of slightly different moments: of a lock
// that is being acquired or released it may tell that it is split.
func (i *Inspection) Verdict() Verdict {
	_, most := i.most()
	free, silent, foreign := 0, 0, 0
	for _, n := range i.Nodes {
		switch {
		case errors.Is(n.Err, ErrForeign):
			foreign++
		case n.Err != nil:
			silent++
		case n.Holder == "":
			free++
		}
	}
	switch {
	case most >= i.Need:
		return VerdictHeld
	case free >= i.Need:
		return VerdictFree
	case foreign > len(i.Nodes)-i.Need:
		return VerdictForeign
	case max(most, free)+silent >= i.Need:
		return VerdictUnknown
	}
	return VerdictSplit
}

// Holder is the Holder of the lock that a majority of the nodes has, and how many have
// it; "" and 0 if none has a majority.
func (i *Inspection) Holder() (holder string, on int) {
	if holder, on = i.most(); on < i.Need {
		return "", 0
	}
	return holder, on
}

// most is who has the most nodes. Of several with as many it is the first.
func (i *Inspection) most() (holder string, on int) {
	counts := map[string]int{}
	for _, n := range i.Nodes {
		counts[n.Holder]++
	}
	for _, n := range i.Nodes {
		if n.Holder != "" && counts[n.Holder] > on {
			holder, on = n.Holder, counts[n.Holder]
		}
	}
	return holder, on
}
