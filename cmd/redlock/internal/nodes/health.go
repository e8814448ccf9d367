package nodes

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/terminal"
	"github.com/quorumlock/redlock/quorum"
)

// health is the state of all masters: the object of --json.
type health struct {
	Time     time.Time `json:"time"` // when the masters had answered, by this host's clock
	Nodes    []*master `json:"nodes"`
	Warnings []warning `json:"warnings"`
	Quorum   int       `json:"quorum"` // how many masters must agree
	Voting   int       `json:"voting"` // how many masters can vote now
}

func newHealth(masters []*master, guard, ttl time.Duration) *health {
	h := &health{Time: time.Now().UTC(), Nodes: masters, Warnings: judge(masters, guard, ttl), Quorum: quorum.Size(len(masters))}
	for _, m := range masters {
		if m.State == stateOK {
			h.Voting++
		}
	}
	return h
}

// verdict returns an error if no client can get a lock.
func (h *health) verdict() error {
	switch {
	case h.Voting < h.Quorum:
		return &cli.ExitError{Code: cli.ExitNoQuorum, Err: fmt.Errorf("no quorum: %s", h.count())}
	case slices.ContainsFunc(h.Nodes, func(m *master) bool { return m.duplicateOf != "" }):
		return &cli.ExitError{Code: cli.ExitNoQuorum, Err: errors.New("no lock can be had: one server is listed twice")}
	}
	return nil
}

func (h *health) count() string {
	return fmt.Sprintf("%d of %d masters can vote, %d needed", h.Voting, len(h.Nodes), h.Quorum)
}

func (h *health) encode(w io.Writer) error {
	if h.Warnings == nil {
		h.Warnings = []warning{}
	}
	return cli.PrintJSON(w, h)
}

func (h *health) print(w io.Writer, p terminal.Painter) error {
	var b strings.Builder
	health, settings := healthColumns(), settingColumns()
	b.WriteString(masterTable(h.Nodes, health).Show(p) + "\n" + masterTable(h.Nodes, settings).Show(p))
	if h.gaps(append(health, settings...)) {
		b.WriteString(p.Paint(terminal.Dim, terminal.Wrap("? is what this user may not ask (+info +time +config|get), or the server does not tell", terminal.Indent)))
	}
	for _, g := range h.grouped() {
		b.WriteString("\n" + terminal.Indent + p.Paint(terminal.Yellow, g.Code) + strings.TrimPrefix(terminal.Wrap(g.Code+g.subject(len(h.Nodes)), terminal.Indent), terminal.Indent+g.Code))
		b.WriteString(terminal.Wrap(g.Text, terminal.Indent+terminal.Indent))
	}
	if h.verdict() == nil {
		fmt.Fprintf(&b, "\n%s\n", terminal.Indent+p.Paint(terminal.Green, h.count()+"."))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// gaps reports whether any value of a server that answers is unknown.
func (h *health) gaps(cols []column) bool {
	return slices.ContainsFunc(h.Nodes, func(m *master) bool {
		return m.err == nil && slices.ContainsFunc(cols, func(c column) bool { return c.cell(m) == "" })
	})
}

// group is a warning about several masters.
type group struct {
	warning
	nodes []string
}

func (h *health) grouped() (all []group) {
	for _, w := range h.Warnings {
		i := slices.IndexFunc(all, func(g group) bool { return g.Code == w.Code && g.Text == w.Text })
		if i < 0 {
			i = len(all)
			all = append(all, group{warning: w})
		}
		all[i].nodes = append(all[i].nodes, w.Node)
	}
	return all
}

// subject names the masters that the group is about, out of n, for the text after its code.
func (g group) subject(n int) string {
	switch {
	case g.Node == "":
		return ""
	case len(g.nodes) == n && n > 1:
		return fmt.Sprintf(": all %d masters", n)
	}
	return ": " + strings.Join(g.nodes, ", ")
}
