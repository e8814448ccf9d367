package status

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
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/redlock"
)

// The states of a key on a node. A string that does not look like a lock counts as held.
const (
	Held    = "held"
	Free    = "free"
	Foreign = "foreign" // the key is not a string
	Failed  = "failed"
)

func stateOf(n redlock.NodeInspection) string {
	switch {
	case errors.Is(n.Err, redlock.ErrForeign):
		return Foreign
	case n.Err != nil:
		return Failed
	case n.Holder != "":
		return Held
	}
	return Free
}

func stateTint(state string) terminal.Colour {
	return map[string]terminal.Colour{Held: terminal.Yellow, Free: terminal.Green, Foreign: terminal.Red, Failed: terminal.Red}[state]
}

// fenceWidth is the width of a fencing token until the year 2255.
const fenceWidth = 16

// holders returns a table with a row for each node. It has a column for fences if any node has one.
func holders(nodes []redlock.NodeInspection) terminal.Table {
	t := terminal.Table{Indent: terminal.Indent, Columns: []terminal.Column{
		{Head: "state", Least: len(Failed)}, {Head: "holder", Least: 8}, {Head: "expires", Right: true}, {Head: "waiting", Right: true},
	}}
	fences := slices.ContainsFunc(nodes, func(n redlock.NodeInspection) bool { return n.Fence > 0 })
	if fences {
		t.Columns = append(t.Columns, terminal.Column{Head: "fence", Right: true, Least: fenceWidth})
	}
	for _, n := range nodes {
		state, holder, expires := stateOf(n), "-", "-"
		row := terminal.Row{Name: n.Addr, Cells: []terminal.Cell{{Text: state, Tint: stateTint(state)}}}
		switch state {
		case Failed, Foreign:
			row.Text = plain.Line(n.Err)
			t.Rows = append(t.Rows, row)
			continue
		case Held:
			holder, expires = n.Holder, lives(n.TTL)
		}
		row.Cells = append(row.Cells, terminal.Cell{Text: holder}, terminal.Cell{Text: expires}, terminal.Cell{Text: number(int64(n.Waiting))})
		if fences {
			row.Cells = append(row.Cells, terminal.Cell{Text: number(n.Fence)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// number formats n, or returns ? if the user may not see it.
func number(n int64) string {
	if n < 0 {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

// lives formats the time that a key has left.
func lives(ttl time.Duration) string {
	switch {
	case ttl < 0:
		return "never"
	case ttl < time.Minute:
		return fmt.Sprintf("%.1fs", ttl.Seconds())
	}
	return terminal.Brief(ttl)
}

// Inspection describes an inspection in words.
type Inspection struct{ *redlock.Inspection }

// Show returns the answer of each node and the verdict. With values it shows the key's values too.
func (i Inspection) Show(p terminal.Painter, values bool) string {
	verdict := i.Verdict()
	tint := map[redlock.Verdict]terminal.Colour{redlock.VerdictHeld: terminal.Yellow, redlock.VerdictFree: terminal.Green}
	head := fmt.Sprintf("Lock %q on %d masters, of which %d are a majority:", plain.Printable(i.Key), len(i.Nodes), i.Need)
	said := terminal.Wrap(terminal.Capital(verdict.String())+": "+i.Sentence(), "")
	word, rest, _ := strings.Cut(said, ":")
	text := terminal.Wrap(head, "") + "\n" + holders(i.Nodes).Show(p) + "\n" + p.Paint(cmp.Or(tint[verdict], terminal.Red), word) + ":" + rest
	if values {
		text += i.secrets()
	}
	return text
}

// Sentence explains the verdict, without its name.
func (i Inspection) Sentence() string {
	said := ""
	switch n := len(i.Nodes); i.Verdict() {
	case redlock.VerdictHeld:
		holder, on := i.Holder()
		said = fmt.Sprintf("%s has it on %d of %d masters, %s.", holder, on, n, i.until(holder))
	case redlock.VerdictFree:
		free := i.Count(Free)
		said = fmt.Sprintf("%d of %d masters do not have it, so nobody holds it.", free, n)
		if i.Count(Held) > 0 {
			said += " What is left on others goes when it expires."
		}
	case redlock.VerdictSplit:
		said = "no majority has one lock, and none is free of it. Contenders give back at once what they got. Look again: what is still there is left over, and goes when it expires."
	case redlock.VerdictForeign:
		said = "the key is not a lock, and nobody can have a lock of this name until somebody deletes it."
	default:
		return i.Silence() + "."
	}
	if why := i.Why(); why != "" {
		said += " It does not look like a lock " + why + "."
	}
	if owners := i.owners(time.Now()); owners != "" {
		said += " " + owners
	}
	if n := i.waiting(); n > 0 {
		said += fmt.Sprintf(" %d in the queue.", n)
	}
	return said
}

// owners names the owner of each holder whose value has a label, in a sentence; "" if none has.
func (i Inspection) owners(now time.Time) string {
	var all []string
	for _, n := range i.Nodes {
		if n.Since.IsZero() {
			continue
		}
		said := fmt.Sprintf("%s is %s, since %s", n.Holder, cmp.Or(n.Owner, "unnamed"), n.Since.UTC().Format(time.RFC3339))
		if ago := now.Sub(n.Since); ago >= 0 { // its clock may be ahead of ours
			said += fmt.Sprintf(" (%s ago)", terminal.Brief(ago.Truncate(time.Second)))
		}
		if !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "; ") + "."
}

// Why returns where and why the key does not look like a lock, or "" if it does everywhere.
func (i Inspection) Why() string {
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

// Silence explains why there is no verdict.
func (i Inspection) Silence() string {
	answered := len(i.Nodes) - i.Count(Failed)
	if answered < i.Need {
		return fmt.Sprintf("%d of %d masters could tell, %d are needed", answered, len(i.Nodes), i.Need)
	}
	return fmt.Sprintf("%d of %d masters could tell, and it depends on the others", answered, len(i.Nodes))
}

// until describes how long the holder keeps a majority, which ends when fewer than Need masters
// have its lock.
func (i Inspection) until(holder string) string {
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

func (i Inspection) Count(state string) (n int) {
	for _, node := range i.Nodes {
		if stateOf(node) == state {
			n++
		}
	}
	return n
}

// most returns the largest number of masters that have the same lock.
func (i Inspection) most() (n int) {
	on := map[string]int{}
	for _, node := range i.Nodes {
		if node.Holder != "" {
			on[node.Holder]++
			n = max(n, on[node.Holder])
		}
	}
	return n
}

// waiting returns the length of the longest queue. A node that restarts loses its entries.
func (i Inspection) waiting() (n int) {
	for _, node := range i.Nodes {
		n = max(n, node.Waiting)
	}
	return n
}

// secrets lists each value once. It does not shorten them, so that they can be copied.
func (i Inspection) secrets() string {
	var lines []string
	for _, n := range i.Nodes {
		if n.Holder == "" {
			continue
		}
		value := n.Value()
		if value == "" || plain.Printable(value) != value {
			value = strconv.Quote(value)
		}
		if line := terminal.Indent + n.Holder + terminal.Gap + value + "\n"; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\nValues; who knows one can release the lock:\n" + strings.Join(lines, "")
}
