package redlock

import (
	"errors"
	"fmt"
	"time"
)

// Verdict is the conclusion from the nodes' answers to an inspection.
type Verdict uint8

const (
	// VerdictUnknown means that nodes which could not report decide whether a majority has one
	// lock, or a majority has no key.
	VerdictUnknown Verdict = iota
	// VerdictFree means that a majority does not have the key, so that no client holds it, and the
	// next one can acquire it. A minority may have keys that a client left behind.
	VerdictFree
	// VerdictHeld means that a majority has the key with one value.
	VerdictHeld
	// VerdictSplit means that no majority has one value, and no majority is without the key, whatever
	// the nodes that could not report have. Several contenders have a part each, or one has lost its
	// majority. No client holds the lock, and none can before some of these keys expire or are
	// deleted.
	VerdictSplit
	// VerdictForeign means that the key has another type than a lock's on so many nodes that no
	// client can acquire it until somebody deletes it.
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

// Verdict sums up the nodes' answers. They are of slightly different moments: a lock that is being
// acquired or released may look split.
func (i *Inspection) Verdict() Verdict {
	_, most := i.most()
	free, unknown, foreign := 0, 0, 0
	for _, n := range i.Nodes {
		switch {
		case errors.Is(n.Err, ErrForeign):
			foreign++
		case n.Err != nil:
			unknown++
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
	case max(most, free)+unknown >= i.Need:
		return VerdictUnknown
	}
	return VerdictSplit
}

// Holder returns the Holder of the lock that a majority of the nodes has, and the number of nodes
// that have it; "" and 0 if no lock has a majority.
func (i *Inspection) Holder() (holder string, on int) {
	if holder, on = i.most(); on < i.Need {
		return "", 0
	}
	return holder, on
}

// Owner returns the Owner of the lock that a majority of the nodes has, and since when it has the
// lock; "" and a zero time if no lock has a majority, or its value has no label.
func (i *Inspection) Owner() (owner string, since time.Time) {
	holder, _ := i.Holder()
	for _, n := range i.Nodes {
		if n.Holder == holder {
			return n.Owner, n.Since
		}
	}
	return "", time.Time{}
}

// most returns the holder that the most nodes have, and the number of these nodes. If several
// holders have as many, it is the first of them.
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
