package redlock_test

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/quorumlock/redlock/internal/testenv/inmemory"
)

// sent is a command that has been executed.
type sent struct {
	by   string // a party; empty: another client
	node int
	what string // "try", "stand", "leave", "release", "extend", "inspect", "force" or the command's name
	at   time.Time
}

// tape is what has been executed on all masters, without handshakes.
type tape struct {
	mu   sync.Mutex
	by   map[*inmemory.Path]string
	sent []sent
}

// record has a tape of all that the parties send from now on.
func (b *bed) record(parties ...*party) *tape {
	t := &tape{by: map[*inmemory.Path]string{}}
	for _, p := range parties {
		for _, path := range p.paths {
			t.by[path] = p.name
		}
	}
	for i, m := range b.masters.All() {
		m.Observe(func(e inmemory.Exchange) {
			switch what := verb(e.Command); what {
			case "HELLO", "CLIENT", "INFO":
			default:
				t.mu.Lock()
				defer t.mu.Unlock()
				t.sent = append(t.sent, sent{t.by[e.Path], i, what, time.Now()})
			}
		})
	}
	return t
}

// verb is what a command is for.
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
	case slices.Contains([]string{"try", "stand", "leave"}, args[0]):
		return args[0]
	default:
		return "release"
	}
}

// count empties the tape and counts what was on it: by whom, and "what n" times.
func (t *tape) count() map[string]map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := map[string]map[string]int{}
	for _, s := range t.sent {
		if counts[s.by] == nil {
			counts[s.by] = map[string]int{}
		}
		counts[s.by][s.what]++
	}
	t.sent = nil
	return counts
}

// total empties the tape and counts what was on it.
func (t *tape) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.sent = nil }()
	return len(t.sent)
}

// asked is a count without what keeps connections alive.
func asked(counts map[string]map[string]int) map[string]map[string]int {
	for p, c := range counts {
		delete(c, "PING")
		if len(c) == 0 {
			delete(counts, p)
		}
	}
	return counts
}

func sorted(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }

// published counts what a node says to those who wait.
func (b *bed) published(i int) *atomic.Int32 {
	n := new(atomic.Int32)
	b.redis(i).Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if command == "PUBLISH" {
			n.Add(1)
		}
		return false
	})
	return n
}
