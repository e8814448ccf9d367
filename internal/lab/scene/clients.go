package scene

import (
	"slices"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
)

// Clients derives what clients believe from the events of a history and from the votes that they learn
// of. Its methods must not be called at the same time.
type Clients struct {
	nodes, quorum int
	all           []Client
}

// NewClients returns the view of clients that have done nothing yet.
func NewClients(clients, nodes, quorum int) *Clients {
	c := &Clients{nodes: nodes, quorum: quorum}
	for i := range clients {
		c.all = append(c.all, Client{Client: i + 1, State: Idle, Locks: []Lock{}})
	}
	return c
}

// Client returns a client's state. The caller may keep it.
func (c *Clients) Client(number int) Client {
	s := c.all[number-1]
	s.Locks = slices.Clone(s.Locks)
	if s.Asking != nil {
		ballot := *s.Asking
		ballot.Votes = slices.Clone(ballot.Votes)
		s.Asking = &ballot
	}
	return s
}

// Set changes a client's state by hand.
func (c *Clients) Set(number int, change func(*Client)) { change(&c.all[number-1]) }

// verbs are the operations that begin with these events.
var verbs = map[history.Kind]string{history.Asked: "acquire", history.Extending: "extend", history.Releasing: "release"}

// Saw changes the state of the event's client. It reports whether the event is a client's own.
func (c *Clients) Saw(e history.Event) bool {
	if e.Client == 0 || e.Node != 0 || e.Client > len(c.all) {
		return false
	}
	s := &c.all[e.Client-1]
	at := slices.IndexFunc(s.Locks, func(l Lock) bool { return l.Op == e.Op })
	switch e.Kind {
	case history.Asked, history.Extending, history.Releasing:
		if e.Kind == history.Asked {
			s.Locks = slices.DeleteFunc(s.Locks, func(l Lock) bool { return l.Context != alive })
			s.Last = ""
		}
		s.State = Asking
		s.Asking = &Ballot{Op: e.Op, Key: e.Key, Verb: verbs[e.Kind], Votes: make([]string, c.nodes), Need: c.quorum}
	case history.Granted:
		s.Asking = nil
		s.Locks = append(s.Locks, Lock{Op: e.Op, Key: e.Key, Since: e.At, Until: e.Until, Token: e.Token, Context: alive})
		s.Last = "got the lock"
	case history.Denied:
		s.Asking, s.Last = nil, e.Err
	case history.NotExtended:
		s.Asking, s.Last = nil, "not extended: "+e.Err
	case history.Extended:
		s.Asking, s.Last = nil, "extended"
		c.until(s, at, e.Until)
	case history.Renewed:
		c.until(s, at, e.Until)
	case history.Released, history.Retained, history.Detached:
		s.Asking, s.Last = nil, string(e.Kind)
		if e.Err != "" {
			s.Last += ": " + e.Err
		}
		s.Locks = slices.DeleteFunc(s.Locks, func(l Lock) bool { return l.Op == e.Op })
	case history.Ended:
		if at >= 0 {
			s.Locks[at].Context = "done: " + e.Err
		}
	case history.Paused:
		s.Paused = true
	case history.Resumed:
		s.Paused, s.Suspended = false, false
	case history.Died, history.Closed:
		*s = Client{Client: s.Client, Locks: []Lock{}, State: Dead, Last: "its process has ended"}
		return true
	case history.Started:
		*s = Client{Client: s.Client, Locks: []Lock{}, Last: "a new process"}
	}
	c.settle(s)
	return true
}

// Voted records a vote that a client learned of, if it is about the operation that the client has under
// way, and reports whether it is. A second vote of a master begins a new round.
func (c *Clients) Voted(client, node int, verb, vote string) bool {
	s := &c.all[client-1]
	b := s.Asking
	if b == nil || b.Verb != verb {
		return false
	}
	if b.Votes[node-1] != "" {
		clear(b.Votes)
		b.Granted = 0
	}
	b.Votes[node-1] = vote
	if vote == "granted" {
		b.Granted++
	}
	c.settle(s)
	return true
}

const alive = "alive"

func (c *Clients) until(s *Client, lock int, until time.Duration) {
	if lock >= 0 {
		s.Locks[lock].Until = until
	}
}

// settle derives the state in a word.
func (c *Clients) settle(s *Client) {
	held := slices.ContainsFunc(s.Locks, func(l Lock) bool { return l.Context == alive })
	switch b := s.Asking; {
	case s.State == Dead:
	case b == nil && held:
		s.State = Holding
	case b == nil:
		s.State = Idle
	case b.Verb == "extend":
		s.State = Extending
	case b.Verb == "release":
		s.State = Releasing
	case s.State == Waiting || c.cannotWin(b):
		s.State = Waiting
	default:
		s.State = Asking
	}
}

// cannotWin reports whether too many masters have refused or failed in this round.
func (c *Clients) cannotWin(b *Ballot) bool {
	against := 0
	for _, v := range b.Votes {
		if v != "" && v != "granted" {
			against++
		}
	}
	return against > c.nodes-c.quorum
}
