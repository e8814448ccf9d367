package sim

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/redlock/internal/lab/history"
	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// vote is a command that a server executed or, without a text, a change that came of
// itself.
type vote struct {
	at           time.Duration
	node, client int // from 0
	server       int // from 0; most often the node's own
	key, value   string
	token        int64 // of the command
	text         string
	change       history.Kind // Stored, Removed, or empty
	owner        string       // the value that the key has now, or had when it was removed
	until        time.Duration
	wrong        string // what the command did wrong; empty: nothing
	rule         string // the rule that the command broke
}

// holder is the owner of a value.
type holder struct{ client, op int } // op is 0 while it is not known

type storage struct {
	server int
	key    string
}

func compare(a, b storage) int {
	return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.key, b.key))
}

type stored struct {
	value string
	until time.Duration
}

// observe records what a server executes, as seen at the server itself.
func (w *world) observe(server int) {
	m := w.masters.Master(server)
	m.Observe(func(x inmemory.Exchange) {
		p := w.pathOf(x.Path)
		client, node := p.ends()
		w.show.arrived(p, x.Command)
		if dates(x.Command) && len(x.Reply) > 0 && x.Reply[0] == '+' {
			w.add(history.Event{At: w.now(), Kind: history.Fault, Node: node + 1, Server: serverOf(node, server), Text: dated})
		}
		if x.Command[0] == "INFO" {
			w.mu.Lock()
			w.sees(client, server, true)
			w.mu.Unlock()
		}
		o := w.order(x.Command)
		key, value, verb := o.key, o.value, o.verb
		if verb == "" {
			if o.queue != "" {
				w.report(history.Violation{At: w.now(), Rule: Harness, Key: key, Text: fmt.Sprintf("the lab does not know what %q asks for", x.Command)})
			}
			return
		}
		word := o.said(x.Reply, o.channel != "" && m.Miniredis().PubSubNumSub(o.channel)[o.channel] > 0)
		v := vote{at: w.now(), node: node, client: client, server: server, key: key, value: value, token: o.token, text: verb + " " + word}
		held, _ := m.Miniredis().Get(key)
		fence := ""
		if o.fence != "" {
			// Scripts take the machine's time. A burst of them takes more than the 10 ms
			// after which the scheduler takes the processor from a goroutine.
			defer runtime.Gosched()
			fence, _ = m.Miniredis().Get(o.fence)
		}
		w.show.names(o, client)
		w.show.answered(p, o, word)
		defer w.show.master(w.plan.home(server), nil)
		mismatch := ""
		if o.queue != "" {
			mismatch = unlike(m, o)
		}
		now := stored{value: held}
		if held != "" {
			now.until = v.at + m.Miniredis().TTL(key)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sees(client, server, false)
		if verb == "acquire" && w.values[value] == (holder{}) {
			w.values[value] = holder{client: v.client}
		}
		if verb == "extend" {
			w.extended[value] = true // and may be topped up from now on, more than once
		}
		place := storage{server, key}
		if o.fence == "" && verb == "acquire" {
			this := proposal{node: node, server: server, value: value}
			if word == "refused" && held == value && w.proposed[this] && !w.extended[value] {
				v.wrong, v.rule = "was sent again", Owner
			}
			w.proposed[this] = true
		}
		if o.fence != "" && !strings.HasPrefix(word, "failed") {
			v.wrong, v.rule = w.fenced(o, word, node, server, w.stored[place], fence, v.at), Fence
			if wrong := w.retained(storage{server, o.fence}, fence, v.at+m.Miniredis().TTL(o.fence)); v.wrong == "" {
				v.wrong = wrong
			}
		}
		if before := w.stored[place]; before != now {
			was := before
			if o.old != "" && was.value == o.old {
				was = stored{} // given back first
			}
			if bad := wrong(verb, value, was, now, v.at); bad != "" {
				v.wrong, v.rule = bad, Owner
			}
			switch {
			case held != "":
				v.change, v.owner, v.until = history.Stored, held, now.until
			case before.until > v.at: // otherwise it had expired
				v.change, v.owner = history.Removed, before.value
			}
			w.stored[place] = now
		}
		if v.wrong == "" && mismatch != "" {
			v.wrong, v.rule = mismatch, Flag
		}
		w.cast(v)
	})
}

// unlike returns how a server disagrees about a queue, or "": the queue and its flag exist
// together or not at all.
func unlike(m *inmemory.Master, o order) string {
	server := m.Miniredis()
	queue, flag := server.Exists(o.queue), server.Exists(o.flag)
	switch {
	case queue && !flag:
		return "left a queue without its flag"
	case flag && !queue && server.TTL(o.flag) > time.Second: // with a second or less left it is about to go
		return "left the flag of a queue that is gone"
	}
	return ""
}

// wrong returns what a command did wrong to a key, or "". Only the owner deletes a key or
// changes its ttl, only an acquisition creates it, and only ReleaseAfter shortens its ttl.
func wrong(verb, value string, before, now stored, at time.Duration) string {
	lived := before.value != "" && before.until > at
	switch {
	case lived && before.value != value:
		return "touched somebody else's key"
	case !lived && now.value != "" && verb != "acquire":
		return "put a key back that was gone"
	case lived && now.value == value && now.until < before.until && verb != "retain":
		return "shortened its key"
	}
	return ""
}

// jumped records that a server's clock was set ahead by d or, if d is [history.Never], that
// the server has forgotten everything.
func (w *world) jumped(server int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if d == history.Never {
		for place := range w.fences {
			if place.server == server {
				delete(w.fences, place)
			}
		}
	}
	for place, until := range w.retentions {
		switch {
		case place.server != server:
		case d == history.Never:
			delete(w.retentions, place)
		default:
			w.retentions[place] = until - d
		}
	}
	for _, key := range w.plan.keys() {
		place := storage{server, key}
		s, known := w.stored[place]
		if !known || s.until <= now {
			continue
		}
		v := vote{at: now, node: w.plan.home(server), server: server, key: place.key, change: history.Stored, owner: s.value, until: s.until - d}
		if v.until <= now {
			v.change, v.until = history.Removed, 0
		}
		w.cast(v)
		w.stored[place] = stored{s.value, s.until - d}
	}
}

// checkVotes reports commands that did something wrong. It passes over several at one
// instant on one key, as it is not known which of them came first.
func (w *world) checkVotes() {
	type instant struct {
		storage
		at time.Duration
	}
	at := map[instant]int{}
	for _, v := range w.votes {
		at[instant{storage{v.server, v.key}, v.at}]++
	}
	for _, v := range w.votes {
		if v.wrong != "" && at[instant{storage{v.server, v.key}, v.at}] == 1 {
			w.report(history.Violation{
				At: v.at, Rule: v.rule, Key: v.key,
				Text: fmt.Sprintf("client %d's %s on node %d %s", v.client+1, v.text, v.node+1, v.wrong),
			})
		}
	}
}

// pathOf returns the path of a client with this network; nil if it is no client's.
func (w *world) pathOf(p *inmemory.Path) *path {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range slices.Concat(w.clients, w.former) {
		for _, own := range c.paths {
			if own.Path == p {
				return own
			}
		}
	}
	return nil
}

// ends returns the client and the node of a path, and -1 and -1 of none.
func (p *path) ends() (client, node int) {
	if p == nil {
		return -1, -1
	}
	return p.numbers[0], p.numbers[1]
}

// serverOf returns a server's number in events: 0 for the node's own.
func serverOf(node, server int) int {
	if node == server {
		return 0
	}
	return server + 1
}

// own records the owner of a value. If the value has one, it is handed over now.
func (w *world) own(value string, client, op int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.values[value].op > 0 {
		now := w.now()
		w.heirs[value] = append(w.heirs[value], heir{holder{client, op}, now})
		// From now on what the servers have is the heir's.
		for _, place := range slices.SortedFunc(maps.Keys(w.stored), compare) {
			if s := w.stored[place]; s.value == value && s.until > now {
				w.cast(vote{at: now, node: w.plan.home(place.server), server: place.server, key: place.key, change: history.Stored, owner: value, until: s.until})
			}
		}
		return
	}
	w.values[value] = holder{client, op}
}

// heir is a holder to whom a value was handed over.
type heir struct {
	holder
	at time.Duration
}

// ownerAt returns the owner that a value had at a time. If client is not negative, it returns the
// last one until then that is this client's, as operations of an earlier owner can still arrive.
func (w *world) ownerAt(value string, at time.Duration, client int) holder {
	owner := w.values[value]
	for _, next := range w.heirs[value] {
		if next.at <= at && (client < 0 || next.client == client) {
			owner = next.holder
		}
	}
	return owner
}

// history returns all events of the run, in order.
func (w *world) history() []history.Event {
	w.checkVotes()
	for _, v := range w.votes {
		for _, e := range w.eventsOf(v) {
			w.log.Add(e)
		}
	}
	w.votes = nil
	return w.log.Events()
}

// eventsOf returns the events of a vote, with what is known now of the owners.
func (w *world) eventsOf(v vote) (events []history.Event) {
	if v.text != "" {
		events = append(events, history.Event{
			At: v.at, Kind: history.Voted, Client: v.client + 1, Node: v.node + 1, Server: serverOf(v.node, v.server), Op: w.ownerAt(v.value, v.at, v.client).op, Key: v.key, Text: v.text, Token: v.token,
		})
	}
	if v.change != "" {
		owner, node := w.ownerAt(v.owner, v.at, -1), w.plan.home(v.server)
		events = append(events, history.Event{
			At: v.at, Kind: v.change, Client: owner.client + 1, Node: node + 1, Server: serverOf(node, v.server), Op: owner.op, Key: v.key, Until: v.until,
		})
	}
	return events
}

// cast records a vote. mu is held.
func (w *world) cast(v vote) {
	w.votes = append(w.votes, v)
	w.show.vote(v)
}
