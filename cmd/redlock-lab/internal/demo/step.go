package demo

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quorumlock/redlock/clock"
	"github.com/quorumlock/redlock/internal/cli"
	"github.com/quorumlock/redlock/internal/plain"
	"github.com/quorumlock/redlock/quorum"
	"github.com/quorumlock/redlock/redlock"
)

// step is one chapter of a demo. Its exported fields are one line of --json.
type step struct {
	Number  int     `json:"step"`
	Title   string  `json:"title"`
	OK      bool    `json:"ok"`
	Problem string  `json:"problem,omitempty"`
	Rounds  []round `json:"rounds"`
	Writes  []write `json:"writes,omitempty"` // after the first rounds, in their order
	Note    string  `json:"note,omitempty"`
}

// round is one operation of one client.
type round struct {
	Client  string     `json:"client"`
	Op      string     `json:"op"`
	Key     string     `json:"key"`
	Result  string     `json:"result"`
	Error   string     `json:"error,omitempty"`
	Elapsed cli.Micros `json:"elapsed_us"` // until it was decided
	Token   int64      `json:"token,omitempty"`
	*worth             // nil for a release
	*ballot            // nil if not every node has answered

	// Cleared is the number of masters that were seen to have no key after a
	// release.
	Cleared int `json:"cleared,omitempty"`
}

// worth is how long a grant is valid, and how that is calculated.
type worth struct {
	TTL      cli.Micros `json:"ttl_us"`
	Drift    cli.Micros `json:"drift_us"`
	Validity cli.Micros `json:"validity_us"` // 0 without a grant
}

// ballot holds the votes of all nodes. A majority decides before the last of them.
type ballot struct {
	Granted int    `json:"granted"` // without those that came too late
	Needed  int    `json:"needed"`
	Votes   []vote `json:"nodes"`
}

func (s *step) add(r round) { s.Rounds = append(s.Rounds, r) }

// vote is one node's answer.
type vote struct {
	Addr    string     `json:"addr"`
	Vote    string     `json:"vote"`
	Latency cli.Micros `json:"latency_us"`
	Said    string     `json:"said"`
	Late    bool       `json:"late,omitempty"` // granted after the attempt had failed; not counted

	brief string // Said, shortened for a table
}

// results names the errors that can end a round, in the order in which they are checked.
var results = []struct {
	err  error
	name string
}{
	{redlock.ErrHeld, "held"},
	{redlock.ErrNoQuorum, "no quorum"},
	{redlock.ErrNotHeld, "not held"},
	{redlock.ErrExpired, "expired"},
}

func newRound(client, op, key string, t redlock.Trace, err error) round {
	r := round{Client: client, Op: op, Key: key, Result: "granted", Elapsed: cli.Micros(t.Elapsed)}
	if err != nil {
		r.Result, r.Error = "failed", err.Error()
		for _, known := range results {
			if errors.Is(err, known.err) {
				r.Result = known.name
				break
			}
		}
	}
	if len(t.Nodes) == 0 {
		return r
	}
	r.ballot = &ballot{Needed: t.Need}
	missing := decidedWithout(err)
	for i, n := range t.Nodes {
		v := newVote(op, n)
		if n.Vote == quorum.Granted && missing[i] {
			v.Late = true
			v.brief += ", too late: not counted"
		}
		r.Votes = append(r.Votes, v)
	}
	r.Granted = r.count(quorum.Granted)
	return r
}

// decidedWithout returns the indexes of the nodes that had not granted when an operation failed.
func decidedWithout(err error) map[int]bool {
	nodes := map[int]bool{}
	if failed := (*redlock.QuorumError)(nil); errors.As(err, &failed) {
		for _, n := range failed.Nodes {
			nodes[n.Index] = true
		}
	}
	return nodes
}

// newWorth repeats the library's calculation: ttl − elapsed − drift.
func newWorth(ttl, elapsed time.Duration, err error) *worth {
	ttl = ttl.Truncate(time.Millisecond) // as nodes keep it
	w := &worth{TTL: cli.Micros(ttl), Drift: cli.Micros(clock.DefaultDrift.Of(ttl))}
	if err == nil {
		w.Validity = cli.Micros(clock.Validity(ttl, elapsed, clock.DefaultDrift))
	}
	return w
}

// yes words a grant, by operation.
var yes = map[string]string{"acquire": "OK", "extend": "extended", "release": "deleted"}

func newVote(op string, n redlock.NodeTrace) vote {
	v := vote{Addr: n.Addr, Vote: n.Vote.String(), Latency: cli.Micros(n.Latency)}
	dial := (*net.OpError)(nil)
	switch {
	case n.Err == nil:
		v.Said = yes[op]
		v.brief = v.Said
	case n.Vote == quorum.Pending:
		// This counts as failed, but the node has done nothing wrong.
		v.Vote = "not asked"
		v.Said, v.brief = n.Err.Error(), "decided before its turn"
	case errors.As(n.Err, &dial) && dial.Err != nil:
		v.Said, v.brief = n.Err.Error(), plain.Error(n.Err).Error()
	default:
		v.Said, v.brief = n.Err.Error(), n.Err.Error()
	}
	v.Said, v.brief = plain.Printable(v.Said), plain.Printable(v.brief)
	return v
}

// count returns the number of votes of a kind, without those that came too late.
func (r round) count(kind quorum.Vote) (n int) {
	if r.ballot == nil {
		return 0
	}
	for _, v := range r.Votes {
		if v.Vote == kind.String() && !v.Late {
			n++
		}
	}
	return n
}

// wantGrants checks that a round has least to most grants.
func (r round) wantGrants(least, most int) error {
	granted := r.count(quorum.Granted)
	switch {
	case r.ballot == nil:
		return fmt.Errorf("%s: not every master has answered", r.Op)
	case least <= granted && granted <= most:
		return nil
	case least == most:
		return fmt.Errorf("%s: %d masters granted it, not %d", r.Op, granted, least)
	}
	return fmt.Errorf("%s: %d masters granted it, not %d to %d", r.Op, granted, least, most)
}
