package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/redlock"
)

// The states of a key on a node. A string that does not look like a lock is held too.
const (
	stateHeld    = "held"
	stateFree    = "free"
	stateForeign = "foreign" // of another type
	stateFailed  = "failed"
)

func stateOf(n redlock.NodeInspection) string {
	switch {
	case errors.Is(n.Err, redlock.ErrForeign):
		return stateForeign
	case n.Err != nil:
		return stateFailed
	case n.Holder != "":
		return stateHeld
	}
	return stateFree
}

func stateTint(state string) colour {
	return map[string]colour{stateHeld: yellow, stateFree: green, stateForeign: red, stateFailed: red}[state]
}

// The widths of the table's columns, but for the address and the state. A token has 16 digits until the
// year 2255.
const (
	holderWidth, expiresWidth, waitingWidth, fenceWidth = 8, len("expires"), len("waiting"), 16

	besideState = len(indent) + len(gap) + len(gap) + holderWidth + len(gap) + expiresWidth + len(gap) + waitingWidth
	besideError = len(indent) + len(gap) + len(gap)
)

// holders is a table with a row for each node, and a column for fences if any has one. An
// address that is too long goes on below, as two that are cut may look the same.
func (p painter) holders(nodes []redlock.NodeInspection) string {
	fences := slices.ContainsFunc(nodes, func(n redlock.NodeInspection) bool { return n.Fence > 0 })
	stateWidth := len(stateFailed)
	for _, n := range nodes {
		stateWidth = max(stateWidth, len(stateOf(n)))
	}
	room, addr := columns-besideState-stateWidth, len("node")
	if fences {
		room -= len(gap) + fenceWidth
	}
	for _, n := range nodes {
		addr = max(addr, min(width(n.Addr), room))
	}

	var b strings.Builder
	row := func(addrCell, state, holder, expires, waiting, fence string) string {
		line := indent + addrCell + gap + state + gap + pad(holder, holderWidth) + gap +
			padLeft(expires, expiresWidth) + gap + padLeft(waiting, waitingWidth)
		if fences {
			line += gap + padLeft(fence, fenceWidth)
		}
		return line
	}
	b.WriteString(p.paint(dim, row(pad("node", addr), pad("state", stateWidth), "holder", "expires", "waiting", "fence")) + "\n")
	for _, n := range nodes {
		name := slices.Collect(slices.Chunk([]rune(n.Addr), addr))
		first, state := pad(string(name[0]), addr), stateOf(n)
		tinted := p.paint(stateTint(state), pad(state, stateWidth))
		waiting, fence := number(int64(n.Waiting)), number(n.Fence)
		switch state {
		case stateFailed, stateForeign:
			at := besideError + stateWidth + addr
			b.WriteString(indent + first + gap + tinted + gap + hang(plain.Line(n.Err), at, columns-at))
		case stateHeld:
			b.WriteString(row(first, tinted, n.Holder, lives(n.TTL), waiting, fence))
		default:
			b.WriteString(row(first, tinted, "-", "-", waiting, fence))
		}
		b.WriteString("\n")
		for _, rest := range name[1:] {
			b.WriteString(indent + string(rest) + "\n")
		}
	}
	return b.String()
}

// number is one that the user may not be permitted to see.
func number(n int64) string {
	if n < 0 {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

// lives is how long a key does.
func lives(ttl time.Duration) string {
	switch {
	case ttl < 0:
		return "never"
	case ttl < time.Minute:
		return fmt.Sprintf("%.1fs", ttl.Seconds())
	}
	return brief(ttl)
}

// inspected is an inspection in words.
type inspected struct{ *redlock.Inspection }

// show is all of it: what each node said, and what that comes to.
func (i inspected) show(p painter, values bool) string {
	verdict := i.Verdict()
	tint := map[redlock.Verdict]colour{redlock.VerdictHeld: yellow, redlock.VerdictFree: green}
	head := fmt.Sprintf("Lock %q on %d masters, of which %d are a majority:", plain.Printable(i.Key), len(i.Nodes), i.Need)
	said := wrap(capital(verdict.String())+": "+i.sentence(), "")
	word, rest, _ := strings.Cut(said, ":")
	text := wrap(head, "") + "\n" + p.holders(i.Nodes) + "\n" + p.paint(cmp.Or(tint[verdict], red), word) + ":" + rest
	if values {
		text += i.secrets()
	}
	return text
}

// sentence is what the verdict means, without the word.
func (i inspected) sentence() string {
	said := ""
	switch n := len(i.Nodes); i.Verdict() {
	case redlock.VerdictHeld:
		holder, on := i.Holder()
		said = fmt.Sprintf("%s has it on %d of %d masters, %s.", holder, on, n, i.until(holder))
	case redlock.VerdictFree:
		free := i.count(stateFree)
		said = fmt.Sprintf("%d of %d masters do not have it, so nobody holds it.", free, n)
		if i.count(stateHeld) > 0 {
			said += " What is left on others goes when it expires."
		}
	case redlock.VerdictSplit:
		said = "no majority has one lock, and none is free of it. Contenders give back at once what they got. Look again: what is still there is left over, and goes when it expires."
	case redlock.VerdictForeign:
		said = "the key is not a lock, and nobody can have a lock of this name until somebody deletes it."
	default:
		return i.silence() + "."
	}
	if why := i.foreign(); why != "" {
		said += " It does not look like a lock " + why + "."
	}
	if n := i.waiting(); n > 0 {
		said += fmt.Sprintf(" %d in the queue.", n)
	}
	return said
}

// foreign is where the key does not look like a lock, and why; "" if it does everywhere.
func (i inspected) foreign() string {
	var reasons []string
	on := map[string]int{}
	for _, n := range i.Nodes {
		why := n.Foreign()
		if why != "" && on[why] == 0 {
			reasons = append(reasons, why)
		}
		on[why]++
	}
	for r, why := range reasons {
		reasons[r] = fmt.Sprintf("on %d of %d masters: %s", on[why], len(i.Nodes), why)
	}
	return strings.Join(reasons, "; ")
}

// silence is why nothing can be said.
func (i inspected) silence() string {
	told := len(i.Nodes) - i.count(stateFailed)
	if told < i.Need {
		return fmt.Sprintf("%d of %d masters could tell, %d are needed", told, len(i.Nodes), i.Need)
	}
	return fmt.Sprintf("%d of %d masters could tell, and it depends on the others", told, len(i.Nodes))
}

// until is how long the holder has its majority. A master less than that is none.
func (i inspected) until(holder string) string {
	var ttls []time.Duration
	for _, n := range i.Nodes {
		if n.Holder == holder && n.TTL < 0 {
			n.TTL = math.MaxInt64
		}
		if n.Holder == holder {
			ttls = append(ttls, n.TTL)
		}
	}
	slices.Sort(ttls)
	if ttl := ttls[len(ttls)-i.Need]; ttl < math.MaxInt64 {
		return fmt.Sprintf("for %s unless it is renewed", lives(ttl))
	}
	return "and it does not expire"
}

func (i inspected) count(state string) (n int) {
	for _, node := range i.Nodes {
		if stateOf(node) == state {
			n++
		}
	}
	return n
}

// waiting is how many stand in the longest queue. A place is lost on a node that restarts.
func (i inspected) waiting() (n int) {
	for _, node := range i.Nodes {
		n = max(n, node.Waiting)
	}
	return n
}

// secrets are the values, each once. They stay whole, to be copied.
func (i inspected) secrets() string {
	var lines []string
	for _, n := range i.Nodes {
		if n.Holder == "" {
			continue
		}
		value := n.Value()
		if value == "" || plain.Printable(value) != value {
			value = strconv.Quote(value)
		}
		if line := indent + n.Holder + gap + value + "\n"; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\nValues; who knows one can release the lock:\n" + strings.Join(lines, "")
}
