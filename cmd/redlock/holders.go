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

// fenceWidth is that of a token until the year 2255.
const fenceWidth = 16

// holders is a table with a row for each node, and a column for fences if any has one.
func holders(nodes []redlock.NodeInspection) table {
	t := table{indent: indent, columns: []tableColumn{
		{head: "state", least: len(stateFailed)}, {head: "holder", least: 8}, {head: "expires", right: true}, {head: "waiting", right: true},
	}}
	fences := slices.ContainsFunc(nodes, func(n redlock.NodeInspection) bool { return n.Fence > 0 })
	if fences {
		t.columns = append(t.columns, tableColumn{head: "fence", right: true, least: fenceWidth})
	}
	for _, n := range nodes {
		state, holder, expires := stateOf(n), "-", "-"
		row := tableRow{name: n.Addr, cells: []tableCell{{state, stateTint(state)}}}
		switch state {
		case stateFailed, stateForeign:
			row.text = plain.Line(n.Err)
			t.rows = append(t.rows, row)
			continue
		case stateHeld:
			holder, expires = n.Holder, lives(n.TTL)
		}
		row.cells = append(row.cells, tableCell{text: holder}, tableCell{text: expires}, tableCell{text: number(int64(n.Waiting))})
		if fences {
			row.cells = append(row.cells, tableCell{text: number(n.Fence)})
		}
		t.rows = append(t.rows, row)
	}
	return t
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
	text := wrap(head, "") + "\n" + holders(i.Nodes).show(p) + "\n" + p.paint(cmp.Or(tint[verdict], red), word) + ":" + rest
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
