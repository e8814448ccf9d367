package redlock

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/quorum"
)

// ears hears the wake-ups for all waits of a Redlock: on each server, whoever wakes one
// says so on the Redlock's own channel, so that nobody hears what is not for him.
type ears struct {
	r        *Redlock
	id       string // the channels, without their common prefix
	ctx      context.Context
	cancel   context.CancelFunc
	gone     context.Context // has ended
	stations []station
	running  sync.WaitGroup

	mu    sync.Mutex
	waits map[string]*wait // by name
	late  map[string]*wait // those that were over last
	swept time.Time        // when late was last looked through for old ones
	began time.Time        // when there was none before
	muted []bool           // nodes of which it was said that they do not let us listen
}

const (
	// lateFor is how long after its end the messages for a wait are taken to have crossed
	// with what ended it, which has told all nodes. After that the node was not reached.
	lateFor = time.Second
	// manyLate is from when on it is worth looking for those that can be forgotten.
	manyLate = 64
)

// station is how one node is listened to. Its methods do not block.
type station interface {
	// tune has messages for a key listened to, and hears reports whether they are.
	tune(name string)
	hears(name string) bool
	// rest says that nobody waits just now, close that nobody will again.
	rest(now time.Time)
	close()
}

func newEars(r *Redlock, id string) *ears {
	e := &ears{r: r, id: id, waits: map[string]*wait{}, late: map[string]*wait{}, muted: make([]bool, len(r.nodes))}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	var end context.CancelFunc
	e.gone, end = context.WithCancel(e.ctx)
	end()
	for i, n := range r.nodes {
		e.stations = append(e.stations, n.station(e, i))
	}
	return e
}

// begin has a wait woken from as soon as that is possible.
func (e *ears) begin(w *wait) {
	e.mu.Lock()
	if len(e.waits) == 0 {
		e.began = e.r.cfg.Clock.Now()
	}
	e.waits[w.name] = w
	e.mu.Unlock()
	e.tune(w)
}

func (e *ears) tune(w *wait) {
	for _, s := range e.stations {
		s.tune(w.name)
	}
}

func (e *ears) hears(node int, w *wait) bool { return e.stations[node].hears(w.name) }

// end is for a wait that is over. Its last messages may be on their way, also while the
// lock is held that it won.
func (e *ears) end(w *wait) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.r.cfg.Clock.Now()
	if e.waits[w.name] == w {
		delete(e.waits, w.name)
	}
	if len(e.waits) == 0 {
		for _, s := range e.stations {
			s.rest(now)
		}
	}
	if len(e.late) >= manyLate && now.Sub(e.swept) >= lateFor {
		e.swept = now
		maps.DeleteFunc(e.late, func(_ string, w *wait) bool { return w.forgotten(now) })
	}
	e.late[w.name] = w
}

// fresh reports that those who listen have only begun to, and may need a moment.
func (e *ears) fresh() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.r.cfg.Clock.Now().Sub(e.began) < introduction
}

// message is what a node has said: a ticket, and of which key. If that wait is over the
// answer is to leave.
func (e *ears) message(node int, said string) {
	text, name, _ := strings.Cut(said, " ")
	ticket, err := strconv.ParseInt(text, 10, 64)
	if err != nil || name == "" {
		return // nothing that we have sent
	}
	e.mu.Lock()
	w := e.waits[name]
	if w == nil {
		w = e.late[name]
	}
	e.mu.Unlock()
	if w != nil && w.woken(node, ticket) {
		return
	}
	only := make([]bool, len(e.stations))
	only[node] = true
	who, sharded := e.r.names(name)
	e.r.start(quorum.Spec[command]{
		Op: command{
			kind: kindLeave, resource: strings.TrimPrefix(name, e.r.cfg.KeyPrefix), key: name, queue: queueOf(name),
			stance: &stance{who: who, sharded: sharded, ticket: ticketText(ticket)},
		},
		Nodes: only,
		All:   true,
	})
}

// found and lost tell those who wait that they can be woken by a node, or cannot any more.
func (e *ears) found(node int) {
	for _, w := range e.all() {
		if e.stations[node].hears(w.name) {
			w.found(node)
		}
	}
}

func (e *ears) lost(node int) {
	for _, w := range e.all() {
		w.lost(node)
	}
}

func (e *ears) all() []*wait {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*wait, 0, len(e.waits))
	for _, name := range slices.Sorted(maps.Keys(e.waits)) { // so that a simulation can be repeated
		all = append(all, e.waits[name])
	}
	return all
}

// refused tells, once, that a node does not let us listen: it is looked at instead.
func (e *ears) refused(node int, err error) {
	e.mu.Lock()
	said := e.muted[node]
	e.muted[node] = true
	e.mu.Unlock()
	if !said {
		e.r.journal.warn("node does not let us queue, waiting by looking", "node", e.r.nodes[node].addr, "error", scrub(err, "").Error())
	}
}

// sleep reports false if the ears were closed meanwhile.
func (e *ears) sleep(d time.Duration) bool {
	timer := e.r.cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-e.ctx.Done():
		return false
	}
}

// close ends all listening, and wait returns when it has: that may take as long as a
// silent node's handshake.
func (e *ears) close() {
	e.cancel()
	for _, s := range e.stations {
		s.close()
	}
}

func (e *ears) wait() { e.running.Wait() }

// oneEar is the station of a single server: it says everything on one channel.
type oneEar struct {
	*ear
	channel string
}

func listenTo(client *redis.Client) func(e *ears, node int) station {
	client = beside(client)
	return func(e *ears, node int) station {
		return oneEar{
			ear:     &ear{ears: e, node: node, client: client, channels: map[string]bool{}},
			channel: wakePrefix + e.id,
		}
	}
}

func (o oneEar) tune(string)       { o.ear.tune(o.channel) }
func (o oneEar) hears(string) bool { return o.ear.hears(o.channel) }
