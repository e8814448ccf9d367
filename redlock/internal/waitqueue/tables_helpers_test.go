package waitqueue

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// now is the time of these tests, and in is so much later.
var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func in(d time.Duration) time.Time { return now.Add(d) }

func always(int) bool { return true }

// begin returns a wait that is queued on five nodes and looks in 10 s.
func begin() *Wait {
	w := New(Config{
		Nodes: 5, NodeTimeout: 200 * time.Millisecond,
		Random: func(time.Duration) time.Duration { return 1 },
	}).Begin("key", now)
	w.look.at = in(10 * time.Second)
	for i := range w.nodes {
		w.nodes[i].entry = inQueue
	}
	return w
}

// lines returns the lines of a table, without comments.
func lines(t *testing.T, file string) (all []string) {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		if line := scanner.Text(); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	require.NoError(t, scanner.Err())
	return all
}

func parseTime(t *testing.T, text string) time.Time {
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return in(d)
}

// parseNode returns a node as the table describes it.
func parseNode(t *testing.T, text string) node {
	what, value, _ := strings.Cut(text, "=")
	switch what {
	case "queued":
		return node{entry: inQueue}
	case "woken":
		return node{entry: inQueue, woken: true}
	case "free":
		return node{entry: inQueue, freeAt: parseTime(t, value)}
	case "absent":
		return node{}
	case "failed":
		return node{retryAt: in(time.Second)}
	case "requested":
		return node{entry: requested}
	case "noqueue":
		return node{noQueue: true}
	case "silent":
		return node{entry: inQueue, silent: true}
	}
	require.FailNow(t, "no such node", text)
	return node{}
}

// set applies a word of the table's situation.
func set(t *testing.T, w *Wait, s *Situation, text string) {
	what, value, _ := strings.Cut(text, "=")
	but := func() func(int) bool {
		return func(node int) bool { return !strings.Contains(","+value+",", ","+strconv.Itoa(node)+",") }
	}
	switch what {
	case "unsubscribed":
		s.CanWake = but()
	case "uncounted":
		s.Counts = but()
	case "ends":
		s.QuarantineEnds = parseTime(t, value)
	case "ended":
		w.quarantineEnds = parseTime(t, value)
	case "woken":
		n, since, ok := strings.Cut(value, "@")
		w.wokenBy, _ = strconv.Atoi(n)
		if ok {
			w.wokenSince = parseTime(t, since)
		}
	case "notbefore":
		w.notBefore = parseTime(t, value)
	case "poll":
		w.poll = parseTime(t, value)
	case "look":
		w.look.at = parseTime(t, value)
	case "suspect":
		w.foreign.suspect = parseTime(t, value)
	case "foreign":
		w.foreign.seen = now
	case "first":
		w.foreign.first = true
	case "outside":
		w.phase = outside
	case "raise":
		w.raiseIt = true
	default:
		require.FailNow(t, "no such situation", text)
	}
}

// describe words a step as the table does.
func describe(s Step) string {
	words := []string{[...]string{Sleep: "sleep", Try: "try", Enqueue: "enqueue", Probe: "probe"}[s.Do]}
	if s.Do == Sleep {
		words = append(words, s.At.Sub(now).String())
	}
	if s.Do == Enqueue {
		for node, asked := range s.Nodes {
			if asked {
				words = append(words, strconv.Itoa(node))
			}
		}
	}
	return strings.Join(words, " ")
}
