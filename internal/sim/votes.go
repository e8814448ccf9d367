package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/history"
	"github.com/quorumlock/redlock/redlock/redlocktest"
)

// vote is a command that a node executed, or, without a text, a change that came of
// itself.
type vote struct {
	at           time.Duration
	node, client int // from 0
	key, value   string
	text         string
	change       history.Kind // Stored, Removed, or nothing
	owner        string       // the value that the node has now
	until        time.Duration
	wrong        string // what the command must not have done; empty if it is fine
}

// holder is whose value one is.
type holder struct{ client, op int } // op is 0 while it is not known

type storage struct {
	node int
	key  string
}

type stored struct {
	value string
	until time.Duration
}

// observe writes down what a node does, past all links.
func (w *world) observe(node int) {
	m := w.masters.Master(node)
	m.Observe(func(x redlocktest.Exchange) {
		key, value, verb := operation(x.Command)
		if verb == "" {
			return
		}
		v := vote{at: w.now(), node: node, client: w.clientOf(x.Path), key: key, value: value, text: verb + " " + said(x.Reply)}
		held, _ := m.Miniredis().Get(key)
		now := stored{value: held}
		if held != "" {
			now.until = v.at + m.Miniredis().TTL(key)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if verb == "acquire" && w.values[value] == (holder{}) {
			w.values[value] = holder{client: v.client}
		}
		if verb == "extend" {
			w.extended[value] = true // and may be topped up, by several
		}
		place := storage{node, key}
		if said(x.Reply) == "refused" && verb == "acquire" && held == value && !w.extended[value] {
			v.wrong = "was sent again"
		}
		if before := w.stored[place]; before != now {
			v.wrong = wrong(verb, value, before, now, v.at)
			switch {
			case held != "":
				v.change, v.owner, v.until = history.Stored, held, now.until
			case before.until > v.at: // otherwise it had expired
				v.change, v.owner = history.Removed, before.value
			}
			w.stored[place] = now
		}
		w.votes = append(w.votes, v)
	})
}

// wrong says what a command must not have done to a key: nobody but its owner
// deletes it or changes its ttl, nothing but SET creates it, and nothing shortens it.
func wrong(verb, value string, before, now stored, at time.Duration) string {
	lived := before.value != "" && before.until > at
	switch {
	case lived && before.value != value:
		return "touched somebody else's key"
	case !lived && now.value != "" && verb != "acquire":
		return "put a key back that was gone"
	case lived && now.value == value && now.until < before.until:
		return "shortened its key"
	}
	return ""
}

// jumped tells that a node's clock was set ahead by d, or that all is forgotten.
func (w *world) jumped(node int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	for _, key := range w.plan.keys() {
		place := storage{node, key}
		s, known := w.stored[place]
		if !known || s.until <= now {
			continue
		}
		v := vote{at: now, node: node, key: place.key, change: history.Stored, owner: s.value, until: s.until - d}
		if v.until <= now {
			v.change, v.until = history.Removed, 0
		}
		w.votes = append(w.votes, v)
		w.stored[place] = stored{s.value, s.until - d}
	}
}

// checkVotes finds commands that did what they must not. Of several at one instant
// it is not known which came first, so those are let pass.
func (w *world) checkVotes() {
	type instant struct {
		storage
		at time.Duration
	}
	at := map[instant]int{}
	for _, v := range w.votes {
		at[instant{storage{v.node, v.key}, v.at}]++
	}
	for _, v := range w.votes {
		if v.wrong != "" && at[instant{storage{v.node, v.key}, v.at}] == 1 {
			w.report(history.Violation{
				At: v.at, Rule: Owner, Key: v.key,
				Text: fmt.Sprintf("client %d's %s on node %d %s", v.client+1, v.text, v.node+1, v.wrong),
			})
		}
	}
}

// operation reads a command of the library's: SET, or a script with a key and our
// value, and with a ttl if it extends.
func operation(command []string) (key, value, verb string) {
	switch {
	case command[0] == "SET" && len(command) >= 3:
		return command[1], command[2], "acquire"
	case strings.HasPrefix(command[0], "EVAL") && len(command) == 6:
		return command[3], command[4], "extend"
	case strings.HasPrefix(command[0], "EVAL") && len(command) == 5:
		return command[3], command[4], "release"
	}
	return "", "", ""
}

// said is a reply in a word.
func said(reply []byte) string {
	switch line, _, _ := strings.Cut(string(reply), "\r\n"); {
	case line == "+OK" || line == ":1":
		return "granted"
	case strings.HasPrefix(line, "-"):
		return "failed: " + line[1:]
	case strings.HasPrefix(line, ":-"):
		if ms, err := strconv.Atoi(line[2:]); err == nil {
			return "refused: " + (time.Duration(ms) * time.Millisecond).String() + " left"
		}
	}
	return "refused"
}

func (w *world) clientOf(p *redlocktest.Path) int {
	for _, c := range w.clients {
		for _, own := range c.paths {
			if own.Path == p {
				return c.index
			}
		}
	}
	return -1
}

// own says whose the value is.
func (w *world) own(value string, client, op int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[value] = holder{client, op}
}

// history is everything that happened, in order.
func (w *world) history() []history.Event {
	w.checkVotes()
	for _, v := range w.votes {
		if v.text != "" {
			w.log.Add(history.Event{
				At: v.at, Kind: history.Voted, Client: v.client + 1, Node: v.node + 1, Op: w.values[v.value].op, Key: v.key, Text: v.text,
			})
		}
		if v.change != "" {
			owner := w.values[v.owner]
			w.log.Add(history.Event{
				At: v.at, Kind: v.change, Client: owner.client + 1, Node: v.node + 1, Op: owner.op, Key: v.key, Until: v.until,
			})
		}
	}
	w.votes = nil
	return w.log.Events()
}
