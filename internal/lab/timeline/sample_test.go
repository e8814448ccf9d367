package timeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorumlock/redlock/internal/lab/history"
)

const ms = time.Millisecond

// sample plays a small Redlock over faulty nodes. It does not model the library: it makes
// histories of the shape that a simulation writes, faults included.
type sample struct {
	rand  *rand.Rand
	log   history.Log
	nodes []map[string]history.Event // what each node stores
	down  []time.Duration            // when each node answers again
	tasks []task
	ops   []int
}

type task struct {
	at time.Duration
	do func(now time.Duration)
}

func (s *sample) after(at time.Duration, do func(time.Duration)) {
	s.tasks = append(s.tasks, task{at, do})
}

func (s *sample) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.rand.Int64N(int64(b-a)))
}

func newSample(seed uint64, nodes, clients int, end time.Duration, keys ...string) Run {
	s := &sample{rand: rand.New(rand.NewPCG(seed, 1)), down: make([]time.Duration, nodes), ops: make([]int, clients+1)}
	for range nodes {
		s.nodes = append(s.nodes, map[string]history.Event{})
	}
	for c := 1; c <= clients; c++ {
		s.after(s.between(0, 60*ms), func(now time.Duration) { s.acquire(c, keys, now) })
	}
	for at := 300 * ms; at < end; at += s.between(250*ms, 700*ms) {
		s.after(at, s.fault)
	}
	for len(s.tasks) > 0 {
		sort.SliceStable(s.tasks, func(i, j int) bool { return s.tasks[i].at < s.tasks[j].at })
		next := s.tasks[0]
		s.tasks = s.tasks[1:]
		if next.at <= end {
			next.do(next.at)
		}
	}
	events := s.log.Events()
	return Run{
		Title:   fmt.Sprintf("seed %d: %d masters, %d clients, %v", seed, nodes, clients, end),
		Command: fmt.Sprintf("redlock simulate --seed %d", seed), Nodes: nodes, Clients: clients, End: end,
		Events: events, Violations: history.Check(events),
	}
}

func (s *sample) fault(now time.Duration) {
	n := s.rand.IntN(len(s.nodes))
	long := s.between(80*ms, 400*ms)
	e := history.Event{At: now, Kind: history.Fault, Node: n + 1, Until: now + long}
	switch s.rand.IntN(5) {
	case 0:
		e.Text, s.down[n] = "crashed, lost all keys", now+long
		for key, stored := range s.nodes[n] {
			s.log.Add(history.Event{At: now, Kind: history.Removed, Node: n + 1, Client: stored.Client, Op: stored.Op, Key: key})
		}
		clear(s.nodes[n])
	case 1:
		e.Text, s.down[n] = "unreachable", now+long
	case 2:
		e.Text, e.Client = "replies lost", 1+s.rand.IntN(len(s.ops)-1)
	case 3:
		e.Text, e.Node, e.Client, e.Until = "clock jumps by 40ms", 0, 1+s.rand.IntN(len(s.ops)-1), 0
	case 4:
		e.Text, e.Node = "network is slow", 0
	}
	s.log.Add(e)
}

func (s *sample) acquire(c int, keys []string, now time.Duration) {
	s.ops[c]++
	op, key, ttl := s.ops[c], keys[s.rand.IntN(len(keys))], 400*ms
	add := func(e history.Event) {
		e.Client, e.Op, e.Key = c, op, key
		s.log.Add(e)
	}
	add(history.Event{At: now, Kind: history.Asked})
	again := func(at time.Duration) {
		s.after(at+s.between(10*ms, 90*ms), func(t time.Duration) { s.acquire(c, keys, t) })
	}
	votes, last := 0, now
	for n := range s.nodes {
		at := now + s.between(ms, 12*ms)
		last = max(last, at)
		s.after(at, func(at time.Duration) {
			if s.down[n] > at {
				add(history.Event{At: at, Kind: history.Voted, Node: n + 1, Text: "failed", Err: "connection refused"})
			} else if old, taken := s.nodes[n][key]; taken && old.Until > at {
				add(history.Event{At: at, Kind: history.Voted, Node: n + 1, Text: "refused"})
			} else {
				votes++
				e := history.Event{At: at, Kind: history.Stored, Node: n + 1, Client: c, Op: op, Key: key, Until: at + ttl}
				s.nodes[n][key] = e
				add(history.Event{At: at, Kind: history.Voted, Node: n + 1, Text: "granted"})
				s.log.Add(e)
			}
		})
	}
	s.after(last+ms, func(at time.Duration) {
		if votes <= len(s.nodes)/2 {
			add(history.Event{At: at, Kind: history.Denied, Err: fmt.Sprintf("%d of %d granted", votes, len(s.nodes))})
			s.clear(c, op, key, at, add)
			again(at)
			return
		}
		until := now + ttl - 8*ms
		add(history.Event{At: at, Kind: history.Granted, Until: until})
		release := at + s.between(20*ms, 300*ms)
		if s.rand.IntN(14) == 0 {
			s.log.Add(history.Event{At: at + 30*ms, Kind: history.Paused, Client: c})
			s.log.Add(history.Event{At: until + 90*ms, Kind: history.Resumed, Client: c})
			add(history.Event{At: until, Kind: history.Ended, Until: until, Err: "validity is over"})
			release = until + 95*ms
		}
		s.after(release, func(at time.Duration) {
			add(history.Event{At: at, Kind: history.Releasing, Until: until})
			done := s.clear(c, op, key, at, add)
			add(history.Event{At: done, Kind: history.Released})
			again(done)
		})
	})
}

func (s *sample) clear(c, op int, key string, now time.Duration, add func(history.Event)) time.Duration {
	last := now
	for n := range s.nodes {
		at := now + s.between(ms, 8*ms)
		last = max(last, at)
		if s.down[n] > at {
			continue
		}
		s.after(at, func(at time.Duration) {
			if old := s.nodes[n][key]; old.Client == c && old.Op == op {
				delete(s.nodes[n], key)
				add(history.Event{At: at, Kind: history.Removed, Node: n + 1})
			}
		})
	}
	return last + ms
}

// overlapping returns a sample in which two clients believe that they hold one key.
func overlapping(seed uint64) Run {
	r := newSample(seed, 5, 4, 6*time.Second, "orders", "stock")
	locks := history.Locks(r.Events)
	for _, l := range locks {
		if l.Granted < 2*time.Second || l.Releasing-l.Granted < 120*ms {
			continue
		}
		c, op, at := l.Client%4+1, 900, l.Granted+60*ms
		add := func(after time.Duration, kind history.Kind, until time.Duration) {
			r.Events = append(r.Events, history.Event{At: at + after, Kind: kind, Client: c, Op: op, Key: l.Key, Until: until})
		}
		add(-14*ms, history.Asked, 0)
		add(0, history.Granted, at+380*ms)
		add(130*ms, history.Releasing, at+380*ms)
		add(137*ms, history.Released, 0)
		break
	}
	r.Events = append(r.Events, history.Event{At: 4*time.Second + 210*ms, Kind: history.Died, Client: 2})
	r.Events = slices.DeleteFunc(r.Events, func(e history.Event) bool {
		return e.Client == 2 && e.Kind != history.Died && e.At > 4200*ms && e.At < 5*time.Second
	})
	history.Sort(r.Events)
	r.Violations = history.Check(r.Events)
	return r
}

// With TIMELINE_OUT=directory the test leaves its pictures there for inspection.
func TestSamplesRender(t *testing.T) {
	samples := map[string]Run{
		"calm":    newSample(7, 3, 2, 2*time.Second, "orders"),
		"crowded": newSample(42, 9, 8, 12*time.Second, "orders", "stock", "billing"),
		"broken":  overlapping(42),
		"empty":   {},
	}
	for name, r := range samples {
		t.Run(name, func(t *testing.T) {
			var svg, html, text bytes.Buffer
			require.NoError(t, SVG(&svg, r))
			require.NoError(t, HTML(&html, r))
			require.NoError(t, Text(&text, r))
			wellFormed(t, svg.Bytes())

			var again bytes.Buffer
			require.NoError(t, HTML(&again, r))
			require.Equal(t, html.String(), again.String(), "the same run must give the same bytes")

			dir := os.Getenv("TIMELINE_OUT")
			if dir == "" {
				return
			}
			for ending, b := range map[string][]byte{".svg": svg.Bytes(), ".html": html.Bytes(), ".txt": text.Bytes()} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name+ending), b, 0o644))
			}
		})
	}
}
