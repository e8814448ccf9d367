package virtual

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// Command is a command that has been executed.
type Command struct {
	By   string    // the party's name; empty for another client
	Node int       // the number of the master
	What string    // "try", "enqueue", "dequeue", "release", "extend", "inspect", "force" or the command's name
	At   time.Time // when it was executed
}

// Tape records what is executed on all masters, without handshakes.
type Tape struct {
	mu   sync.Mutex
	by   map[*inmemory.Path]string
	Sent []Command // not to be read while commands are executed
}

// Record returns a tape of all that is sent from now on, under the names of the parties.
func (b *Bed) Record(parties ...*Party) *Tape {
	t := &Tape{by: map[*inmemory.Path]string{}}
	for _, p := range parties {
		for _, path := range p.Paths {
			t.by[path] = p.Name
		}
	}
	for i, m := range b.Masters.All() {
		m.Observe(func(e inmemory.Exchange) {
			switch what := verb(e.Command); what {
			case "HELLO", "CLIENT", "INFO":
			default:
				t.mu.Lock()
				defer t.mu.Unlock()
				t.Sent = append(t.Sent, Command{t.by[e.Path], i, what, time.Now()})
			}
		})
	}
	return t
}

// verb returns the purpose of a command.
func verb(c []string) string {
	if c[0] != "EVAL" && c[0] != "EVALSHA" {
		return c[0]
	}
	keys, _ := strconv.Atoi(c[2])
	switch args := c[3+keys:]; {
	case keys == 1:
		return "extend"
	case len(args) == 0:
		return "inspect"
	case keys == 2 && len(args) == 3:
		return "force"
	case slices.Contains([]string{"try", "enqueue", "dequeue"}, args[0]):
		return args[0]
	default:
		return "release"
	}
}

// Count empties the tape and counts what was on it, by party and What.
func (t *Tape) Count() map[string]map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[string]map[string]int{}
	for _, s := range t.Sent {
		if counts[s.By] == nil {
			counts[s.By] = map[string]int{}
		}
		counts[s.By][s.What]++
	}
	t.Sent = nil
	return counts
}

// Total empties the tape and counts what was on it.
func (t *Tape) Total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.Sent = nil }()
	return len(t.Sent)
}

// WithoutPings removes from counts the commands that keep connections alive.
func WithoutPings(counts map[string]map[string]int) map[string]map[string]int {
	for p, c := range counts {
		delete(c, "PING")
		if len(c) == 0 {
			delete(counts, p)
		}
	}
	return counts
}
